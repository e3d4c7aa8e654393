import { useState } from "react";
import { readJson, writeJson } from "@/json";

/** State that the browser keeps, by a name; values must be JSON. What cannot be read is as new. */
export function useStoredState<T extends string | number | boolean>(
  name: string,
  initial: T,
): [T, (value: T) => void] {
  const key = `planwave.${name}`;
  const [value, setValue] = useState<T>(() => read(key, initial));
  const store = (next: T) => {
    setValue(next);
    try {
      localStorage.setItem(key, writeJson(next));
    } catch {
      // A browser that keeps nothing shows the choice until the page is left.
    }
  };
  return [value, store];
}

function read<T>(key: string, initial: T): T {
  try {
    const value: unknown = readJson(localStorage.getItem(key) ?? "null");
    return typeof value === typeof initial ? (value as T) : initial;
  } catch {
    return initial;
  }
}
