import type { Lane, LayoutEdge } from "./layout";

/** Returns the step that an arrow key leads to, or null.
 *
 * Left and right follow an edge to a parent or child, else to the lane beside; up and down stay in
 * the lane. Without a selected step, any arrow leads to the first one. */
export function stepAfterKey(
  key: string,
  selected: string | null,
  lanes: readonly Lane[],
  edges: readonly LayoutEdge[],
): string | null {
  if (!(key in STEPS)) return null;
  const column = lanes.findIndex((lane) => selected !== null && lane.ids.includes(selected));
  if (selected === null || column < 0) return lanes[0]?.ids[0] ?? null;
  const row = lanes[column]?.ids.indexOf(selected) ?? 0;
  switch (key as keyof typeof STEPS) {
    case "ArrowUp":
    case "ArrowDown":
      return lanes[column]?.ids[row + STEPS[key as keyof typeof STEPS]] ?? null;
    case "ArrowLeft":
      return (
        edges.find((edge) => edge.target === selected)?.source ?? nearest(lanes[column - 1], row)
      );
    case "ArrowRight":
      return (
        edges.find((edge) => edge.source === selected)?.target ?? nearest(lanes[column + 1], row)
      );
  }
}

const STEPS = { ArrowUp: -1, ArrowDown: 1, ArrowLeft: -1, ArrowRight: 1 } as const;

function nearest(lane: Lane | undefined, row: number): string | null {
  return lane?.ids[Math.min(row, lane.ids.length - 1)] ?? null;
}
