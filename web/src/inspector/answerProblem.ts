import { errorText } from "@/api/errorText";
import { ApiError } from "@/api/http";

/** Returns whether a request is closed: it was answered, or its node no longer waits. */
export function isOver(error: Error | null): boolean {
  return error instanceof ApiError && ["request-answered", "request-closed"].includes(error.code);
}

/** Returns why an answer was not taken, and the way out. */
export function answerProblem(error: Error): string {
  if (error instanceof ApiError && error.code === "request-answered") {
    return "Somebody was faster: this was answered already. The run goes on with that answer.";
  }
  return errorText(error);
}

/** Returns the errors in the form of an answer, or in its edited value, by field. */
export function formErrors(error: Error | null): Record<string, string> {
  if (!(error instanceof ApiError)) return {};
  return Object.fromEntries(
    error.issues.flatMap(({ pointer, message }) => {
      const inside = pointer?.match(/^\/(?:form|value)(?:\/(.+))?$/);
      if (!inside) return [];
      const missing = message.match(/"([^"]+)" is a required property$/)?.[1];
      const path = [inside[1], missing].filter(Boolean).join("/");
      if (!path) return [];
      return [[path, missing ? "This is needed." : message.replace(/^\S+: /, "")]];
    }),
  );
}
