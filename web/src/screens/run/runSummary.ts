import type { NodeStatus } from "@/api/types";
import type { NodeState, RunState, WaveState } from "@/stream/runState";
import { formatAmount, formatDuration } from "@/ui/format";
import { STATUS_WORDS } from "@/ui/Status";

/** The order in which statuses are counted in the header. */
const COUNTED: readonly NodeStatus[] = [
  "completed",
  "running",
  "retrying",
  "waiting",
  "failed",
  "skipped",
  "blocked",
  "cancelled",
  "pending",
];

export type StatusCount = { status: NodeStatus; count: number };

/** Returns how many steps of the plan itself have each status; statuses of none are left out. */
export function countStatuses(run: RunState): StatusCount[] {
  return countByStatus([...run.nodes.values()].filter((node) => node.prefix === ""));
}

function countByStatus(nodes: readonly NodeState[]): StatusCount[] {
  const counts = new Map<NodeStatus, number>();
  for (const { status } of nodes) counts.set(status, (counts.get(status) ?? 0) + 1);
  return COUNTED.flatMap((status) => {
    const count = counts.get(status);
    return count ? [{ status, count }] : [];
  });
}

/** Returns the statuses of the steps of each wave, for the wave glyph. */
export function statusesByWave(run: RunState): NodeStatus[][] {
  return run.waves.map((wave) => wave.nodes.map((id) => run.nodes.get(id)?.status ?? "pending"));
}

/** Returns what the pill says: "Running, wave 2 of 3", "Waiting for you". */
export function statusWords(run: RunState): string | undefined {
  const { current, total } = run.wave;
  if (run.status === "executing" && total > 1) return `Running, wave ${current} of ${total}`;
  if (run.status !== "paused") return undefined;
  if (run.pause === "waiting" && run.requests.size > 0) return "Waiting for you";
  const running = countStatuses(run).find(({ status }) => status === "running")?.count ?? 0;
  return running > 0 ? `Pausing, ${formatAmount(running, "step")} to end first` : "Paused";
}

/** Whether a model writes a change that was requested; else a person has written it. */
export function isForModel({ by, writer }: NonNullable<RunState["planRequest"]>): boolean {
  return by !== "person" || writer !== undefined;
}

/** Returns why nothing starts while a model writes a change of the plan; undefined where none does. */
export function changeWords({ planRequest: asked, status, nodes }: RunState): string | undefined {
  if (!asked || !isForModel(asked) || status !== "executing") return undefined;
  const name = nodes.get(asked.path ?? "")?.name ?? asked.path ?? "a person";
  const why = asked.by === "failure" ? `${name} failed` : `${name} asks for it`;
  return `A model writes a change of the plan, as ${why}; no step starts meanwhile`;
}

export type WaveSummary = { words: string; time: string };

/** Returns what stands in the header of a lane; `now` is in ms. */
export function summariseWave(wave: WaveState, run: RunState, now: number): WaveSummary {
  const nodes = wave.nodes.flatMap((id) => run.nodes.get(id) ?? []);
  const running = nodes.filter((node) => node.status === "running" || node.status === "retrying");
  const waiting = nodes.filter((node) => node.status === "waiting").length;
  const failed = nodes.filter((node) => node.status === "failed").length;
  const end = wave.endedAt ? Date.parse(wave.endedAt) : now;
  const isOver = run.endedAt !== null;
  const time =
    wave.startedAt && (wave.endedAt || !isOver)
      ? formatDuration((end - Date.parse(wave.startedAt)) / 1000)
      : "";
  if (running.length > 0) return { words: `${running.length} of ${nodes.length} running`, time };
  if (waiting > 0)
    return { words: waiting === 1 ? "1 waits for you" : `${waiting} wait for you`, time };
  if (wave.endedAt) return { words: failed > 0 ? `done, ${failed} failed` : "done", time };
  if (isOver) return { words: endWords(nodes), time: "" };
  return { words: nodes.length === 1 ? "1 step" : `${nodes.length} steps`, time: "" };
}

/** Returns what became of the steps of a wave that never began: "blocked", "1 skipped, 2 blocked". */
function endWords(nodes: readonly NodeState[]): string {
  const words = countByStatus(nodes).map(({ status, count }) => {
    const word = STATUS_WORDS[status].toLowerCase();
    return count === nodes.length ? word : `${count} ${word}`;
  });
  return words.join(", ");
}

/** Returns how long a run has taken, in seconds; 0 before it starts. */
export function elapsedSeconds(run: RunState, now: number): number {
  if (!run.startedAt) return 0;
  const end = run.endedAt ? Date.parse(run.endedAt) : now;
  return Math.max(0, (end - Date.parse(run.startedAt)) / 1000);
}

/** Returns the seconds that running side by side saved: own times together less the time taken. */
export function savedSeconds(run: RunState): number {
  let own = 0;
  for (const node of run.nodes.values()) {
    if (node.prefix === "" && node.origin === "run") own += node.durationS ?? 0;
  }
  return own - elapsedSeconds(run, 0);
}
