import type { KeyboardEvent, RefObject } from "react";
import { isTyping } from "@/ui/shortcuts";
import type { Lane, Layout, LayoutEdge, Point } from "./layout";
import type { CanvasView } from "./useCanvasView";

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

/** How far Shift and an arrow key move the selected steps, in px: one dot of the grid. */
const PUSHES = {
  ArrowLeft: { x: -20, y: 0 },
  ArrowRight: { x: 20, y: 0 },
  ArrowUp: { x: 0, y: -20 },
  ArrowDown: { x: 0, y: 20 },
};

type StepKeys = {
  steps: readonly { id: string }[];
  edges: readonly LayoutEdge[];
  selection: ReadonlySet<string>;
  onSelect: (ids: Iterable<string>) => void;
  editing?: { onMove: (places: ReadonlyMap<string, Point>, kind: "push") => void };
  layout: Layout;
  view: CanvasView;
  area: RefObject<HTMLDivElement | null>;
};

/** Returns what moves along the edges and within the wave by arrow keys, and the selected steps with Shift. */
export function stepKeys(keys: StepKeys) {
  const { steps, edges, selection, onSelect, editing, layout, view, area } = keys;
  const push = ({ x, y }: Point) => {
    const places = [...selection].flatMap((id): [string, Point][] => {
      const at = layout.positions.get(id);
      return at ? [[id, { x: at.x + x, y: at.y + y }]] : [];
    });
    if (places.length > 0) editing?.onMove(new Map(places), "push");
  };
  return (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
    if (event.shiftKey) {
      if (!editing || !(event.key in PUSHES)) return;
      event.preventDefault();
      return push(PUSHES[event.key as keyof typeof PUSHES]);
    }
    const focused = event.target instanceof HTMLElement ? event.target.dataset.step : undefined;
    // The focus is there first: a selection that is in the address comes a moment after its key.
    const from = focused ?? steps.find(({ id }) => selection.has(id))?.id ?? null;
    const next = stepAfterKey(event.key, from, layout.lanes, edges);
    if (!next) return;
    event.preventDefault();
    onSelect([next]);
    view.reveal(next);
    focusStep(area.current, next);
  };
}

/** Takes the focus to a step, which may be drawn only some frames after the view has moved to it. */
function focusStep(area: HTMLElement | null, id: string, frames = 30): void {
  const step = area?.querySelector(`[data-step="${CSS.escape(id)}"]`);
  if (step instanceof HTMLElement) step.focus({ preventScroll: true });
  else if (frames > 0) requestAnimationFrame(() => focusStep(area, id, frames - 1));
}
