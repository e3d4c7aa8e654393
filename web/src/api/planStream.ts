import { ApiError, NETWORK_FAILURE, newKey, send } from "@/api/http";
import { serverEvents } from "@/api/sse";
import type { PlanRequest, PlanStreamEvent } from "@/api/types";
import { readJson } from "@/json";

/** Events after which nothing comes. */
const LAST: ReadonlySet<PlanStreamEvent["event"]> = new Set<PlanStreamEvent["event"]>([
  "plan",
  "problem",
  "server_draining",
]);

/**
 * Start planning and yield its events; the last event is `plan`, `problem` or
 * `server_draining`. Aborting stops the writing.
 *
 * @throws {ApiError} The service refuses it before the first event, or the connection breaks.
 */
export async function* streamPlan(
  body: PlanRequest,
  signal: AbortSignal,
): AsyncGenerator<PlanStreamEvent> {
  const parts = { body, signal, query: { stream: true }, key: newKey() };
  const response = await send("createPlan", parts);
  try {
    for await (const batch of serverEvents(response)) {
      for (const { event, data } of batch) {
        const told = { event, data: readJson(data) } as PlanStreamEvent;
        yield told;
        if (LAST.has(told.event)) return;
      }
    }
  } catch (error) {
    if (signal.aborted) throw error;
  }
  throw new ApiError(NETWORK_FAILURE, "The connection broke before the plan was complete.", 0);
}
