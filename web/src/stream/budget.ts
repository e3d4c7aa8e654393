import { type JsonNumber, numberOf } from "@/json";
import { fieldOf } from "@/stream/json";
import type { RunState } from "@/stream/runState";

type Limits = Readonly<Record<string, number>>;

/** The kind of the request of a run for a higher budget. */
export const BUDGET = "budget";

/** Returns the limits that are set; null without any. */
export function limitsOf(
  budget: Record<string, JsonNumber | null> | null | undefined,
): Limits | null {
  const set = Object.entries(budget ?? {}).flatMap(([name, most]) =>
    most === null ? [] : [[name, Number(most)] as const],
  );
  return set.length > 0 ? Object.fromEntries(set) : null;
}

/** Returns the limits after an answer to the request for a higher budget. */
export function raised(limits: Limits | null, answer: unknown): Limits | null {
  const value = fieldOf(answer, "decision") === "raise" ? fieldOf(answer, "value") : null;
  const changed = Object.keys(limits ?? {}).flatMap((name) => {
    const most = numberOf(fieldOf(value, name));
    return most === null ? [] : [[name, most] as const];
  });
  return changed.length > 0 ? { ...limits, ...Object.fromEntries(changed) } : limits;
}

/** The names of the limits that an answer to the request for a higher budget sets. */
export function raisedNames(answer: unknown): string[] {
  const value = fieldOf(answer, "decision") === "raise" ? fieldOf(answer, "value") : null;
  return Object.keys(value ?? {});
}

/** The time in which a run was neither paused nor without a process. */
export type ActiveTime = {
  /** Seconds counted before `since`. */
  readonly seconds: number;
  /** UTC; null while nothing is counted. */
  readonly since: string | null;
};

export function startTime(time: ActiveTime, at: string): ActiveTime {
  return { ...time, since: at };
}

export function stopTime(time: ActiveTime, at: string): ActiveTime {
  return { seconds: activeSeconds(time, Date.parse(at)), since: null };
}

function activeSeconds({ seconds, since }: ActiveTime, now: number): number {
  return since === null ? seconds : seconds + Math.max(0, (now - Date.parse(since)) / 1000);
}

/** How much of one amount of a budget is used. */
export type BudgetLine = {
  readonly name: string;
  readonly used: number;
  readonly most: number;
  /** The service has warned that it is nearly used up. */
  readonly isWarned: boolean;
};

/** ", nearly used up", ", used up"; "" without a warning. */
export function warningWords({ used, most, isWarned }: BudgetLine): string {
  if (!isWarned) return "";
  return used >= most ? ", used up" : ", nearly used up";
}

/** Returns what is used of each limited amount, the nearest to its limit first. `now` is in ms. */
export function budgetLines(
  { budget, usage, active, warned }: RunState,
  now: number,
): BudgetLine[] {
  const used: Record<string, number> = {
    usd: Number(usage.cost_usd ?? 0),
    tokens: usage.input_tokens + usage.output_tokens,
    calls: usage.calls,
    wall_s: activeSeconds(active, now),
  };
  return Object.entries(budget ?? {})
    .map(([name, most]) => ({ name, most, used: used[name] ?? 0, isWarned: warned.includes(name) }))
    .sort((one, other) => other.used / other.most - one.used / one.most);
}
