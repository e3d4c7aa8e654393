import { askingPath } from "@/stream/calls";
import { isTimer } from "@/stream/json";
import type { NodeState, RunState } from "@/stream/runState";

/** Returns what a step waits for: without a request it is parked until the budget has room for its next call. */
export function waitingWords(run: RunState, { path }: NodeState): string {
  for (const { path: place, request } of run.requests.values()) {
    if (place === null) continue;
    if (askingPath(place, request) === path || place === path) {
      return isTimer(request) ? "Waits for a time." : "Waits for an answer.";
    }
    if (place.startsWith(`${path}[`)) return "A step inside it waits.";
  }
  return "Waits until the budget has room, and goes on by itself.";
}
