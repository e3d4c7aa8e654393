import { groupBy } from "./grouping";

export type LayoutNode = {
  id: string;
  wave: number | null;
  height: number;
  /** Where a person has put it; it keeps its lane. */
  place?: Point | undefined;
};
export type LayoutEdge = { source: string; target: string };
export type Point = { x: number; y: number };
export type Lane = { wave: number; x: number; ids: string[] };
export type Layout = {
  positions: Map<string, Point>;
  lanes: Lane[];
  width: number;
  height: number;
};
export type LayoutSizes = { laneWidth: number; cardWidth: number; gap: number };

/** The height of a card with its three lines, in px. */
export const CARD_HEIGHT = 82;

/** Lays nodes out in lanes: one column per wave, rows ordered by the mean row of their parents.
 *
 * Each column is centred on the tallest one. A node without a wave (a linked one) stands below the
 * column of its first consumer. One that has a place of its own stands there. O((V + E) log V). */
export function layoutLanes(
  nodes: readonly LayoutNode[],
  edges: readonly LayoutEdge[],
  { laneWidth, cardWidth, gap }: LayoutSizes,
): Layout {
  const parents = groupBy(
    edges,
    (edge) => edge.target,
    (edge) => edge.source,
  );
  const columns = columnsOf(nodes, edges);
  const heights = new Map(nodes.map((node) => [node.id, node.height]));
  const columnHeight = (ids: string[]) =>
    ids.reduce((total, id) => total + (heights.get(id) ?? 0) + gap, -gap);
  const rows = new Map<string, number>();
  for (const column of columns) orderByParents(column.ids, parents, rows);
  const height = Math.max(0, ...columns.map((column) => columnHeight(column.ids)));
  const positions = new Map<string, Point>();
  const lanes = columns.map(({ wave, ids }, index) => {
    const x = index * laneWidth;
    let y = (height - columnHeight(ids)) / 2;
    for (const id of ids) {
      positions.set(id, { x: x + (laneWidth - cardWidth) / 2, y });
      y += (heights.get(id) ?? 0) + gap;
    }
    return { wave, x, ids };
  });
  for (const { id, place } of nodes) if (place) positions.set(id, place);
  return { positions, lanes, width: lanes.length * laneWidth, height };
}

type Column = { wave: number; ids: string[] };

function columnsOf(nodes: readonly LayoutNode[], edges: readonly LayoutEdge[]): Column[] {
  const waveOf = new Map(nodes.map((node) => [node.id, node.wave]));
  const consumers = groupBy(
    edges,
    (edge) => edge.source,
    (edge) => edge.target,
  );
  const last = Math.max(1, ...nodes.map((node) => node.wave ?? 1));
  const laneOf = (id: string, seen: Set<string>): number => {
    const wave = waveOf.get(id);
    if (wave) return wave;
    if (seen.has(id)) return last;
    const consumer = consumers.get(id)?.find((each) => waveOf.has(each));
    return consumer ? laneOf(consumer, seen.add(id)) : last;
  };
  const columns = new Map<number, string[]>();
  const ordered = [...nodes].sort((a, b) => Number(a.wave === null) - Number(b.wave === null));
  for (const { id } of ordered) {
    const wave = laneOf(id, new Set());
    const ids = columns.get(wave);
    if (ids) ids.push(id);
    else columns.set(wave, [id]);
  }
  return [...columns].sort(([a], [b]) => a - b).map(([wave, ids]) => ({ wave, ids }));
}

/** Sorts `ids` by the mean row of their parents, relative to the middle; keeps the order of others. */
function orderByParents(
  ids: string[],
  parents: Map<string, string[]>,
  rows: Map<string, number>,
): void {
  const middle = (ids.length - 1) / 2;
  const wanted = new Map(
    ids.map((id, index) => {
      const known = (parents.get(id) ?? []).flatMap((parent) => rows.get(parent) ?? []);
      const mean = known.reduce((sum, row) => sum + row, 0) / known.length;
      return [id, known.length > 0 ? mean : index - middle];
    }),
  );
  ids.sort((a, b) => (wanted.get(a) ?? 0) - (wanted.get(b) ?? 0));
  for (const [index, id] of ids.entries()) rows.set(id, index - middle);
}

/** Returns the SVG path of an edge from the right side of one card to the left side of another. */
export function edgePath(from: Point, to: Point): string {
  const reach = Math.max(36, Math.abs(to.x - from.x) / 2);
  return `M${from.x} ${from.y}C${from.x + reach} ${from.y} ${to.x - reach} ${to.y} ${to.x} ${to.y}`;
}

/** Returns the SVG path of a link from the top of one card to the bottom of another. */
export function linkPath(from: Point, to: Point): string {
  const reach = Math.max(12, Math.abs(from.y - to.y) / 2);
  return `M${from.x} ${from.y}C${from.x} ${from.y - reach} ${to.x} ${to.y + reach} ${to.x} ${to.y}`;
}

/** Returns the SVG path of a link up to the bottom of another card of its column, around the cards
 * between them: along `left`. It turns in the gaps between cards, at half of their height. */
export function aroundPath(from: Point, to: Point, left: number, gap: number): string {
  const bend = Math.min(12, gap / 2);
  const [low, high] = [from.y - bend, to.y + bend];
  const inward = left + bend;
  return [
    `M${from.x} ${from.y}Q${from.x} ${low} ${from.x - bend} ${low}`,
    `H${inward}Q${left} ${low} ${left} ${low - bend}`,
    `V${high + bend}Q${left} ${high} ${inward} ${high}`,
    `H${to.x - bend}Q${to.x} ${high} ${to.x} ${to.y}`,
  ].join("");
}
