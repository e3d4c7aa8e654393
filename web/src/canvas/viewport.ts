import type { Point } from "./layout";

type Box = Point & { width: number; height: number };
type View = Point & { zoom: number };
/** What is seen of a canvas, in px; `top` is covered by headers. */
type Frame = { top: number; width: number; height: number };

/** Returns the view moved by as little as brings all of a box into it; null where it is seen already.
 *
 * Of a box larger than the frame, the start is shown. */
export function viewWith(box: Box, view: View, frame: Frame): View | null {
  const x = offset(box.x * view.zoom + view.x, box.width * view.zoom, [0, frame.width]);
  const y = offset(box.y * view.zoom + view.y, box.height * view.zoom, [frame.top, frame.height]);
  return x === 0 && y === 0 ? null : { x: view.x + x, y: view.y + y, zoom: view.zoom };
}

/** How far a box moves along one axis, with a margin to the edge that it was beyond. */
function offset(start: number, length: number, [first, last]: [number, number]): number {
  if (start >= first && start + length <= last) return 0;
  if (start < first) return first + MARGIN - start;
  return Math.max(last - MARGIN - length - start, first - start);
}

/** Between a box that is brought into view and the edge, in px. */
const MARGIN = 24;
