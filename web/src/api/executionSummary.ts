import type {
  ExecutionDigest,
  ExecutionStatus,
  ExecutionSummary,
  UsageResponse,
  WaitsForResponse,
} from "@/api/types";

const ENDED: ReadonlySet<ExecutionStatus> = new Set<ExecutionStatus>([
  "completed",
  "failed",
  "cancelled",
]);

export function isEnded({ status }: { status: ExecutionStatus }): boolean {
  return ENDED.has(status);
}

/** Return whether a run waits for an answer of a person. */
export function isWaiting(run: ExecutionSummary): boolean {
  return !isEnded(run) && run.digest?.waitingForInput === true;
}

/** Return the statuses of the steps of each wave, for the wave glyph. */
export function statusesByWave(digest: ExecutionDigest | null | undefined): string[][] {
  return (digest?.waves ?? []).map((wave) =>
    Object.entries(wave).flatMap(([status, count]) => Array<string>(count).fill(status)),
  );
}

/** Return how long a run has taken, in seconds; null before it starts. `now` is in ms. */
export function secondsOf(
  run: Pick<ExecutionSummary, "started_at" | "completed_at">,
  now: number,
): number | null {
  if (run.started_at === null) return null;
  const end = run.completed_at === null ? now : Date.parse(run.completed_at);
  return Math.max(0, (end - Date.parse(run.started_at)) / 1000);
}

export function tokensOf(usage: UsageResponse): number {
  return usage.input_tokens + usage.output_tokens;
}

/** Return what people call the run, else its title, or its goal. */
export function titleOf(run: { name?: string | null; title: string; user_prompt: string }): string {
  return run.name || run.title || run.user_prompt;
}

/** Return the inputs of a run on one line, "" without a plan: the name of an answer in a chat is its message already. */
export function inputsOf({
  plan_id,
  digest,
}: Pick<ExecutionSummary, "plan_id" | "digest">): string {
  return plan_id ? (digest?.inputs ?? "") : "";
}

/** Return the cost of a run with that of its planning; null where neither is known. */
export function costWithPlanning(
  own: UsageResponse["cost_usd"],
  planning: UsageResponse | null | undefined,
): number | null {
  const known = [own, planning?.cost_usd].filter((cost) => cost !== null && cost !== undefined);
  return known.length === 0 ? null : known.reduce((sum: number, cost) => sum + Number(cost), 0);
}

/** What a retry of a run does: of a cancelled one nothing need have failed. */
export function retryLabel(status: string): string {
  return status === "cancelled" ? "Run the rest" : "Retry failed";
}

/** Why no process runs a run although some may come: "Waits for a worker that has a local model". */
export function waitsForWords({ capability, processes }: WaitsForResponse): string {
  const what = capability === "local" ? "a local model" : `the capability ${capability}`;
  return `Waits for a worker that has ${what}${processes === 0 ? "; there is none now" : ""}`;
}
