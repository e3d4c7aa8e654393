import type { NodeState, RunState } from "@/stream/runState";

type Run = Pick<RunState, "endedAt" | "status" | "nodes">;

/** Returns the step of the run's own graph that a step is inside of, or is. */
export function outerStep(path: string): string {
  return path.split("[")[0] ?? path;
}

/** Returns why a run cannot be forked at a step: only steps of its own graph can run again. */
export function forkObstacle(
  run: Run,
  { path, prefix }: Pick<NodeState, "path" | "prefix">,
): string | undefined {
  if (prefix !== "") {
    const outer = outerStep(path);
    return `It is inside ${run.nodes.get(outer)?.name ?? outer}, which runs again as a whole.`;
  }
  if (run.endedAt !== null || run.status === "paused") return undefined;
  return "Pause the run first, or wait for its end.";
}
