import { ApiError } from "@/api/http";

/** A name at the beginning stays as it is written: "openai (gpt-4o) refused the key". */
function asSentence(text: string): string {
  const isName = /^\S+ \(/.test(text);
  const start = isName ? text : text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?…]$/.test(start) ? start : `${start}.`;
}

/** In a way out that a program takes; the page has buttons for it. */
const FOR_PROGRAMS = /\/api\/|Authorization:/;

/** Returns an error as the API says it, and the way out where there is one. */
export function errorText(error: unknown): string {
  if (error instanceof ApiError) return problemText(error);
  return asSentence(error instanceof Error ? error.message : String(error));
}

/** Returns a message and its hint as sentences. */
export function problemText(problem: { message: string; hint?: string | null }): string {
  const message = asSentence(problem.message);
  const isForPeople = problem.hint && !FOR_PROGRAMS.test(problem.hint);
  return isForPeople ? `${message} ${asSentence(problem.hint ?? "")}` : message;
}
