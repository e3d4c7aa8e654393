import type { OpenRequestResponse } from "@/api/types";
import { BUDGET } from "@/stream/budget";
import type { RunState } from "@/stream/runState";
import type { JsonSchema } from "@/ui/schema";

/** What a request asks, as far as a page can show it. */
export type RequestFields = {
  kind: string;
  prompt: string;
  /** The decisions there are; none where any answer is taken. */
  actions: string[];
  form: JsonSchema | null;
  value: unknown;
  isEditable: boolean;
  /** When it is answered by itself, in ms since 1970, and how. */
  deadline: number | null;
  timeoutAction: string | null;
  /** Of a request for a higher budget, the limits that hold now. */
  limits: Readonly<Record<string, number>>;
};

/** Reads the request of a step; fields of an unknown form are left out. */
export function readRequest({ request, since, timeout_s }: OpenRequestResponse): RequestFields {
  const fields: Record<string, unknown> =
    typeof request === "object" && request !== null ? { ...request } : { prompt: request };
  const actions = Array.isArray(fields.actions) ? fields.actions : [];
  return {
    kind: text(fields.kind),
    prompt: text(fields.prompt) || text(fields.message) || text(fields.question),
    actions: actions.filter((action) => typeof action === "string"),
    form: isObject(fields.form) ? fields.form : null,
    value: fields.value,
    isEditable: fields.editable === true,
    deadline: timeout_s === null ? null : Date.parse(since) + timeout_s * 1000,
    timeoutAction: text(fields.timeoutAction) || null,
    limits: fields.kind === BUDGET ? numbersOf(fields.limits) : {},
  };
}

/** Returns the steps that ask a person something, with their requests, oldest first. */
export function openQuestions(run: RunState): { path: string; request_id: string }[] {
  return [...run.requests.values()].flatMap((request) => {
    const { path, request_id } = request;
    return path === null || readRequest(request).kind === "timer" ? [] : [{ path, request_id }];
  });
}

/** "approve" is "Approve"; "ask_again" is "Ask again". */
export function actionLabel(action: string): string {
  const words = action.replaceAll(/[_-]+/g, " ");
  return words.charAt(0).toUpperCase() + words.slice(1);
}

function numbersOf(value: unknown): Record<string, number> {
  const entries = Object.entries(isObject(value) ? value : {});
  return Object.fromEntries(
    entries.flatMap(([name, each]) => (typeof each === "number" ? [[name, each]] : [])),
  );
}

function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}

function isObject(value: unknown): value is JsonSchema {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
