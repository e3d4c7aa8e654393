import { type FitViewOptions, useReactFlow, useStore } from "@xyflow/react";
import { useCallback, useEffect, useEffectEvent, useRef } from "react";
import type { Layout } from "@/canvas/layout";
import { useShortcuts } from "@/ui/shortcuts";
import { EDITOR_SIZES } from "./editorLayout";

export const FIT: FitViewOptions = {
  maxZoom: 1,
  padding: { top: "96px", x: "24px", bottom: "56px" },
};

/** Keeps the plan in view when the canvas gets smaller or larger, or the selected step gets another
 * wave: all of it until somebody has moved the view, then the selected step. Returns what has to be
 * told that the view is moved. */
export function useView(selection: ReadonlySet<string>, layout: Layout) {
  const { fitView, getViewport, setViewport } = useReactFlow();
  const width = useStore((state) => state.width);
  const hasMoved = useRef(false);
  const fit = () => {
    hasMoved.current = false;
    void fitView(FIT);
  };
  useShortcuts("The view", [{ keys: "f", does: "Fit the plan into view", run: fit }]);
  const [id = ""] = selection;
  const wave = layout.lanes.find(({ ids }) => ids.includes(id))?.wave;
  const keepInView = useEffectEvent(() => {
    if (!hasMoved.current) return void fitView(FIT);
    const { x, y, zoom } = getViewport();
    const at = layout.positions.get(id);
    if (!at) return;
    const right = (at.x + EDITOR_SIZES.cardWidth) * zoom + x;
    const beyond = Math.max(0, right - width + MARGIN);
    if (beyond > 0) void setViewport({ x: x - beyond, y, zoom });
  });
  useEffect(() => {
    if (width > 0) keepInView();
  }, [width]);
  const selected = useRef({ id, wave });
  useEffect(() => {
    const before = selected.current;
    selected.current = { id, wave };
    if (before.id === id && before.wave !== wave) keepInView();
  }, [id, wave]);
  return useCallback((event: unknown) => {
    if (event) hasMoved.current = true;
  }, []);
}

/** Between the selected step and the edge of the canvas, in px. */
const MARGIN = 24;
