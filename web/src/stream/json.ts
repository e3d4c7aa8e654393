import { isObject, writeJson } from "@/json";
/** Return a JSON value as text: text unchanged, null as empty text, else compact JSON. */
export function toText(value: unknown): string {
  if (typeof value === "string") return value;
  return value === null || value === undefined ? "" : writeJson(value);
}

/** Return a field of an object, undefined where the value is no object. */
export function fieldOf(value: unknown, name: string): unknown {
  return isObject(value) ? value[name] : undefined;
}

/** Return whether a request waits for a time, not for a person. */
export function isTimer(request: unknown): boolean {
  return fieldOf(request, "kind") === "timer";
}
