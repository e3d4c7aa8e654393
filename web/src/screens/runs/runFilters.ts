import type { ExecutionFilters } from "@/api/queryKeys";
import { withChangedFilters } from "@/ui/addressFilters";

export const STATUS_FILTERS = [
  "all",
  "running",
  "waiting",
  "completed",
  "failed",
  "cancelled",
] as const;
export const TIME_FILTERS = ["all", "today", "week"] as const;

export type StatusFilter = (typeof STATUS_FILTERS)[number];
export type TimeFilter = (typeof TIME_FILTERS)[number];

export interface RunFilters {
  status: StatusFilter;
  time: TimeFilter;
  text: string;
}

const NAMES = { status: "status", time: "time", text: "q" } as const;
const NONE: RunFilters = { status: "all", time: "all", text: "" };

/** Returns the filters that an address names; what it does not know is no filter. */
export function readFilters(params: URLSearchParams): RunFilters {
  const status = params.get(NAMES.status);
  const time = params.get(NAMES.time);
  return {
    status: STATUS_FILTERS.find((each) => each === status) ?? NONE.status,
    time: TIME_FILTERS.find((each) => each === time) ?? NONE.time,
    text: params.get(NAMES.text) ?? NONE.text,
  };
}

export function withFilters(
  params: URLSearchParams,
  changed: Partial<RunFilters>,
): URLSearchParams {
  return withChangedFilters(params, changed, NONE, NAMES);
}

export function withoutFilters(params: URLSearchParams): URLSearchParams {
  return withFilters(params, NONE);
}

export function hasFilters(filters: RunFilters): boolean {
  return filters.status !== "all" || filters.time !== "all" || filters.text !== "";
}

/** Returns the filters as the API takes them; days are those of the reader. */
export function apiFilters({ status, time, text }: RunFilters, now: Date): ExecutionFilters {
  const since = firstDay(time, now);
  return {
    ...(status === "waiting" && { waiting: true }),
    ...(status === "running" && { status: "executing" as const }),
    ...(status !== "all" && status !== "waiting" && status !== "running" && { status }),
    ...(since && { since: since.toISOString() }),
    ...(text && { q: text }),
  };
}

function firstDay(time: TimeFilter, now: Date): Date | null {
  if (time === "all") return null;
  const daysBefore = time === "today" ? 0 : 6;
  return new Date(now.getFullYear(), now.getMonth(), now.getDate() - daysBefore);
}
