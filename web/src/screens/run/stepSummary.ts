import { tokensOf } from "@/api/executionSummary";
import { presentCalls } from "@/stream/callWords";
import { openParents } from "@/stream/edges";
import { withNames } from "@/stream/names";
import type { NodeState, RunState } from "@/stream/runState";
import { waitingWords } from "@/stream/waiting";
import { formatAmount, formatClock, formatDuration } from "@/ui/format";
import { oneLine, plainLine } from "@/ui/plainLine";

export type StepSummary = {
  meta: string;
  duration: string;
  words: string;
  isStreaming: boolean;
};

/** Characters of a text that a card can show, with room to spare. */
const WORDS_SHOWN = 120;

/** Returns what the card of a step says beside its name and status.
 *
 * `because` is what `reasonOf` says of it, `now` is in ms. */
export function summariseStep(node: NodeState, because: string, now: number): StepSummary {
  const isStreaming = isWorking(node) && node.text.length > 0;
  return {
    meta: metaOf(node),
    duration: durationOf(node, now),
    words: isStreaming
      ? plainLine(node.text.tail.slice(-WORDS_SHOWN))
      : because || resultWords(node),
    isStreaming,
  };
}

/** Returns whether a step does something now. */
export function isWorking(node: NodeState): boolean {
  return node.status === "running" || node.status === "retrying";
}

/** Returns how long a step has taken, "" before it starts. Waiting is counted as a clock. */
export function durationOf(node: NodeState, now: number): string {
  if (node.origin !== "run") return "";
  const start = startOfSpan(node);
  if (node.status === "waiting" && start !== null) return formatClock((now - start) / 1000);
  if (isWorking(node) && node.startedAt) {
    return formatDuration((now - Date.parse(node.startedAt)) / 1000);
  }
  return node.durationS === null ? "" : formatDuration(node.durationS);
}

function startOfSpan(node: NodeState): number | null {
  const last = node.spans.at(-1);
  return last && last.to === null ? Date.parse(last.from) : null;
}

function metaOf(node: NodeState): string {
  if (node.origin === "reused") return "reused";
  if (node.origin !== "run") return "given";
  const calls = presentCalls(node).length;
  if (isWorking(node) && calls > 0) return formatAmount(calls, "call");
  if (node.attempt > 1) return `attempt ${node.attempt}`;
  const tokens = tokensOf(node.usage);
  if (tokens > 0) return formatAmount(tokens, "token");
  const [handle] = node.handles;
  return node.handles.length === 1 && handle && handle !== "output" ? handle : "";
}

/** Returns why a step failed or did not run (yet), "" where there is nothing to explain. */
export function reasonOf(node: NodeState, run: RunState): string {
  switch (node.status) {
    case "failed":
    case "retrying":
      return plainLine(withNames(run.nodes, node.error?.message ?? ""));
    case "blocked": {
      const cause = node.blockedBy?.node;
      return cause
        ? `${nameOf(cause, run)} failed`
        : plainLine(node.blockedBy?.error.message ?? "");
    }
    case "skipped":
      return plainLine(withNames(run.nodes, node.reason ?? ""));
    case "pending":
      return needsOf(node, run);
    case "waiting":
      return waitingWords(run, node);
    case "cancelled":
      return plainLine(node.cause ?? "");
    default:
      return "";
  }
}

function resultWords(node: NodeState): string {
  if (node.result === null) return plainLine(node.text.tail.slice(-WORDS_SHOWN));
  const words = node.result.text.slice(0, WORDS_SHOWN);
  return node.result.isText ? plainLine(words) : oneLine(words);
}

function needsOf(node: NodeState, run: RunState): string {
  const open = openParents(run, node);
  const [first] = open;
  if (open.length === 1 && first) return `Needs ${first.name}`;
  return open.length > 1 ? `Needs ${open.length} more steps` : "";
}

function nameOf(path: string, run: RunState): string {
  return run.nodes.get(path)?.name ?? path;
}
