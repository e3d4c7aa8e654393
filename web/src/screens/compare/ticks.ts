/** The runs that are ticked for a comparison, in the order A, B; at most two. The older one is A unless they are swapped. */
export type Ticks = readonly string[];

/** Returns the ticks that an address names. */
export function readTicks(params: URLSearchParams): Ticks {
  const [a, b] = [params.get("a"), params.get("b")];
  return [...new Set([a, b])].filter((id): id is string => Boolean(id));
}

/** Returns an address's parameters with these ticks; all others stay. */
export function withTicks(params: URLSearchParams, ticks: Ticks): URLSearchParams {
  const next = new URLSearchParams(params);
  for (const [index, name] of ["a", "b"].entries()) {
    const id = ticks[index];
    if (id === undefined) next.delete(name);
    else next.set(name, id);
  }
  return next;
}

/** Returns the ticks with one run more or less; a third one takes the place of B. */
export function toggleTick(ticks: Ticks, id: string): Ticks {
  if (ticks.includes(id)) return ticks.filter((each) => each !== id);
  return olderFirst([...ticks.slice(0, 1), id]);
}

/** Returns two runs in the order of their creation, which is that of their ids: what came later is B. */
export function olderFirst(ticks: Ticks): Ticks {
  return [...ticks].sort();
}

/** Returns the address of the comparison. */
export function comparePath(ticks: Ticks): string {
  return `/runs/compare?${withTicks(new URLSearchParams(), ticks)}`;
}
