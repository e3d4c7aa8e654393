import type { NodeState } from "@/stream/runState";

const QUOTED = /'([\w.[\]/-]+)'/g;

/** Returns a sentence of the service, which calls steps by their ids, with their names. */
export function withNames(nodes: ReadonlyMap<string, NodeState>, sentence: string): string {
  return sentence.replaceAll(QUOTED, (quoted, path: string) => {
    const name = nodes.get(path)?.name;
    return name === undefined || name === path ? quoted : `“${name}”`;
  });
}
