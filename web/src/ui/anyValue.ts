import { readJson, writeJson } from "@/json";

/** A value as it was typed, or why it is none; `undefined` where nothing was. */
export type TypedValue = { value: unknown } | { problem: string };

/** Reads what was typed where any value may stand: JSON, else text, which needs no quotes. */
export function readAny(text: string): TypedValue {
  if (text.trim() === "") return { value: undefined };
  try {
    return { value: readJson(text) };
  } catch (fault) {
    const begun = text.trimStart();
    const isText = /^\{[{%#]/.test(begun) || !/^[{["]/.test(begun);
    if (isText) return { value: text };
    return { problem: `This is not JSON: ${fault instanceof Error ? fault.message : fault}.` };
  }
}

/** Writes a value so that it is read as itself: a text that would be read as a number has quotes. */
export function writeAny(value: unknown): string {
  if (value === undefined || value === null) return "";
  if (typeof value !== "string") return writeJson(value, 2);
  const read = readAny(value);
  return "value" in read && read.value === value ? value : writeJson(value);
}
