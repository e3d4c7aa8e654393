import { fieldOf } from "@/stream/json";

type Limits = Readonly<Record<string, number>>;

/** The kind of the request of a run for a higher budget. */
export const BUDGET = "budget";

/** Returns the limits that are set; null without any. */
export function limitsOf(budget: Record<string, number | null> | null | undefined): Limits | null {
  const set = Object.entries(budget ?? {}).flatMap(([name, most]) =>
    most === null ? [] : [[name, most] as const],
  );
  return set.length > 0 ? Object.fromEntries(set) : null;
}

/** Returns the limits after an answer to the request for a higher budget. */
export function raised(limits: Limits | null, answer: unknown): Limits | null {
  const value = fieldOf(answer, "decision") === "raise" ? fieldOf(answer, "value") : null;
  const changed = Object.keys(limits ?? {}).flatMap((name) => {
    const most = fieldOf(value, name);
    return typeof most === "number" ? [[name, most] as const] : [];
  });
  return changed.length > 0 ? { ...limits, ...Object.fromEntries(changed) } : limits;
}
