import { type FitViewOptions, useReactFlow, useStore } from "@xyflow/react";
import { useEffect, useEffectEvent, useRef, useState } from "react";
import { useShortcuts } from "@/ui/shortcuts";
import { CARD_HEIGHT, type Layout, type LayoutSizes, type Point } from "./layout";
import { viewWith } from "./viewport";

/** Graphs with more steps open at zoom 1 on the wave at work instead of whole. */
const MOST_STEPS_WHOLE = 300;
/** And so do graphs that would be smaller than this, where words are hard to read. */
const SMALLEST = 0.75;
/** What the headers of the lanes take of the view, in px. */
const HEADER = 52;
/** What the tools below the graph take. */
const TOOLS = 48;
/** How much larger or smaller each step of zooming makes the graph. */
const ZOOM_STEP = 1.2;

type CanvasViewOptions = {
  layout: Layout;
  sizes: LayoutSizes;
  /** What tools above the headers of the lanes take, in px. */
  toolsHeight: number;
  /** The step that is kept in view. */
  selected: string | undefined;
  activeWave: number | undefined;
  isFollowing: boolean;
  onFollow: ((isFollowing: boolean) => void) | undefined;
};

export type CanvasView = ReturnType<typeof useCanvasView>;

/** What of a graph is seen: it opens readable, and stays whole while the canvas changes its size, until
 * somebody moves it; then the selected step stays in view. */
export function useCanvasView(options: CanvasViewOptions) {
  const { layout, sizes, selected, isFollowing, onFollow } = options;
  const { fitView, getViewport, setViewport, zoomTo } = useReactFlow();
  const width = useStore((state) => state.width);
  const height = useStore((state) => state.height);
  const isMoved = useRef(false);
  const top = options.toolsHeight + HEADER;
  const fitting: FitViewOptions = {
    maxZoom: 1,
    padding: { top: `${top}px`, x: "8px", bottom: `${TOOLS}px` },
  };
  const isReadable =
    layout.positions.size <= MOST_STEPS_WHOLE &&
    width / layout.width >= SMALLEST &&
    (height - top - TOOLS) / layout.height >= SMALLEST;

  const fit = () => {
    isMoved.current = false;
    void fitView(fitting);
  };
  const zoom = (by: 1 | -1) => {
    isMoved.current = true;
    void zoomTo(getViewport().zoom * ZOOM_STEP ** by);
  };
  const reveal = (id: string | undefined) => {
    const at = layout.positions.get(id ?? "");
    const card = at && { ...at, width: sizes.cardWidth, height: CARD_HEIGHT };
    const bottom = height - TOOLS;
    const view = card && viewWith(card, getViewport(), { top, width, height: bottom });
    if (view) void setViewport(view);
  };
  /** By a pointer, which a click on the canvas does not yet. */
  const onMove = (event: unknown) => {
    if (!event) return;
    isMoved.current = true;
    onFollow?.(false);
  };

  const keepInView = useEffectEvent(() => {
    if (!isMoved.current && (isReadable || selected === undefined)) void open();
    else if (!isFollowing) reveal(selected);
  });
  /** Of a step that was chosen elsewhere: in the timeline or the log, or by its name. */
  const revealChosen = useEffectEvent(() => {
    if (!document.activeElement?.closest(".react-flow")) reveal(selected);
  });
  const { isOpen, open } = useOpening(options, { isReadable, fitting, top });
  useEffect(() => {
    if (isOpen && width > 0 && height > 0) keepInView();
  }, [isOpen, width, height]);
  const wave = layout.lanes.find(({ ids }) => ids.includes(selected ?? ""))?.wave;
  const before = useRef({ selected, wave, positions: layout.positions });
  useEffect(() => {
    const { current } = before;
    before.current = { selected, wave, positions: layout.positions };
    const isNew = selected !== undefined && !current.positions.has(selected);
    const hasOthers = current.positions.size !== layout.positions.size;
    if (isNew || (current.selected === selected && current.wave !== wave)) keepInView();
    else if (current.selected !== selected) revealChosen();
    else if (hasOthers && !isMoved.current) keepInView();
  }, [selected, wave, layout.positions]);

  useViewKeys({ fit, zoom, isFollowing, onFollow });
  return { fit, zoom, reveal, onMove };
}

type Opening = { isReadable: boolean; fitting: FitViewOptions; top: number };

/** Opens the view, and keeps the lane at work in it; returns whether it is open, and how to open it anew. */
function useOpening(options: CanvasViewOptions, { isReadable, fitting, top }: Opening) {
  const { layout, sizes, activeWave, isFollowing } = options;
  const { setCenter, setViewport, getViewport, fitView, viewportInitialized } = useReactFlow();
  const width = useStore((state) => state.width);
  const height = useStore((state) => state.height);
  const [isOpen, setOpen] = useState(false);
  const open = useEffectEvent(() => {
    if (isReadable) return fitView(fitting);
    const wave = activeWave ?? layout.lanes[0]?.wave ?? 1;
    const { x, y } = middleOf(wave, { layout, sizes, top }, height) ?? { x: 0, y: 0 };
    const left = Math.min(0, Math.max(width - layout.width, width / 2 - x));
    return setViewport({ x: left, y: height / 2 - y, zoom: 1 });
  });
  const isReady = viewportInitialized && width > 0;
  useEffect(() => {
    if (isReady) void open().then(() => setOpen(true));
  }, [isReady]);
  useEffect(() => {
    if (!isOpen || !isFollowing || !activeWave) return;
    const { x, zoom } = getViewport();
    const at = middleOf(activeWave, { layout, sizes, top }, height / zoom);
    if (!at) return;
    const half = (sizes.cardWidth / 2) * zoom;
    const middle = at.x * zoom + x;
    if (middle - half >= 0 && middle + half <= width) return;
    void setCenter(at.x, at.y, { zoom, duration: 0 });
  }, [isOpen, isFollowing, activeWave, layout, sizes, top, width, height, setCenter, getViewport]);
  return { isOpen, open };
}

/** The middle of the view on a lane: its first step is below the header where not all have room. */
function middleOf(
  wave: number,
  { layout, sizes, top }: { layout: Layout; sizes: LayoutSizes; top: number },
  viewHeight: number,
): Point | undefined {
  const lane = layout.lanes.find((each) => each.wave === wave);
  if (!lane) return undefined;
  const first = layout.positions.get(lane.ids[0] ?? "")?.y ?? 0;
  const isHigh = layout.height + top > viewHeight;
  const y = isHigh ? first - top + viewHeight / 2 : layout.height / 2;
  return { x: lane.x + sizes.laneWidth / 2, y };
}

type ViewKeys = Pick<CanvasViewOptions, "isFollowing" | "onFollow"> & {
  fit: () => void;
  zoom: (by: 1 | -1) => void;
};

function useViewKeys({ fit, zoom, isFollowing, onFollow }: ViewKeys) {
  const follow = onFollow && (() => onFollow(!isFollowing));
  useShortcuts("The steps", [
    { keys: "f", does: "Fit them into view", run: fit },
    { keys: "+", does: "Zoom in", run: () => zoom(1) },
    { keys: "-", does: "Zoom out", run: () => zoom(-1) },
    ...(follow ? [{ keys: "shift+f", does: "Follow the wave at work", run: follow }] : []),
    // With the focus on a step; see `stepAfterKey`.
    { keys: "arrowleft", does: "A step before" },
    { keys: "arrowright", does: "A step after" },
    { keys: "arrowup", does: "The step above in the wave" },
    { keys: "arrowdown", does: "The step below in the wave" },
  ]);
}
