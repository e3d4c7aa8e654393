export type TimedStep = { id: string; startedAt: number; endedAt: number };
export type Dependency = { source: string; target: string };

/** Returns the steps that the end of the run waited for: from the last one back over the parent
 * that ended last. O(V + E). */
export function criticalPath(
  steps: readonly TimedStep[],
  dependencies: readonly Dependency[],
): Set<string> {
  const byId = new Map(steps.map((step) => [step.id, step]));
  const lastParent = new Map<string, TimedStep>();
  for (const { source, target } of dependencies) {
    const parent = byId.get(source);
    const known = lastParent.get(target);
    if (parent && (!known || parent.endedAt > known.endedAt)) lastParent.set(target, parent);
  }
  const path = new Set<string>();
  let step = steps.reduce<TimedStep | undefined>(
    (last, each) => (last && last.endedAt >= each.endedAt ? last : each),
    undefined,
  );
  while (step && !path.has(step.id)) {
    path.add(step.id);
    step = lastParent.get(step.id);
  }
  return path;
}
