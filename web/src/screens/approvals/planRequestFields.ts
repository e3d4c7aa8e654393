import type { ForecastResponse, PendingRequest } from "@/api/types";
import { isObject } from "@/json";
import { readForecast } from "@/screens/goal/planView";

/** What a run asks about its plan before its first step. */
export type PlanRequestFields = {
  planId: string | null;
  planHash: string | null;
  title: string;
  goal: string;
  forecast: ForecastResponse | null;
};

/** Reads the request of a run for approval of its plan; fields of an unknown form are left out. */
export function readPlanRequest({ request }: Pick<PendingRequest, "request">): PlanRequestFields {
  const fields: Record<string, unknown> = isObject(request) ? { ...request } : {};
  const text = (value: unknown) => (typeof value === "string" ? value : "");
  return {
    planId: text(fields.plan_id) || null,
    planHash: text(fields.plan_hash) || null,
    title: text(fields.title),
    goal: text(fields.goal),
    forecast: readForecast(fields.forecast),
  };
}
