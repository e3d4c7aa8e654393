import type { OpenRequestResponse } from "@/api/types";
import { askingPath } from "@/stream/calls";
import type { RunState } from "@/stream/runState";
import { isForModel } from "./runSummary";

const END_WORDS = {
  completed: "The run is done.",
  failed: "The run failed.",
  cancelled: "The run was cancelled.",
};

/** Returns what a screen reader says when a run has gone from one state to the next, or null.
 *
 * Only what somebody waits for, or may wonder about: the end of a wave, a failure, a question, a change of
 * the plan or the process, and the end of the run. */
export function announcementOf(before: RunState, after: RunState): string | null {
  if (before.executionId !== after.executionId) return null;
  if (after.endedAt && !before.endedAt) {
    return END_WORDS[after.status as keyof typeof END_WORDS] ?? "The run has ended.";
  }
  const asked = [...after.requests.values()].find((each) => !before.requests.has(each.request_id));
  if (asked) return `${askerOf(after, asked)} waits for your answer.`;
  for (const node of after.nodes.values()) {
    if (node.status === "failed" && before.nodes.get(node.path)?.status !== "failed") {
      return [`${node.name} failed.`, planWords(before, after)].filter(Boolean).join(" ");
    }
  }
  const words = planWords(before, after);
  if (words) return words;
  if (after.recoveries > before.recoveries) return "The run goes on in another process.";
  const wave = after.waves.findLast((each, index) => each.endedAt && !before.waves[index]?.endedAt);
  return wave ? `Wave ${wave.number} of ${after.waves.length} is done.` : null;
}

/** What has become of the plan. */
function planWords(before: RunState, after: RunState): string | null {
  if (after.changes.length > before.changes.length) return "The plan of the run was changed.";
  if (after.refusals.length > before.refusals.length) return "The plan of the run stays as it is.";
  const writes = after.planRequest && !before.planRequest && isForModel(after.planRequest);
  return writes ? "A model writes a change of the plan." : null;
}

function askerOf(run: RunState, { path, request }: OpenRequestResponse): string {
  if (path === null) return "The run";
  return run.nodes.get(askingPath(path, request))?.name ?? "A step";
}
