import {
  type Edge,
  type EdgeProps,
  Handle,
  type Node,
  type NodeProps,
  Position,
  ReactFlow,
  ReactFlowProvider,
  useReactFlow,
  useStore,
} from "@xyflow/react";
import "@xyflow/react/dist/base.css";
import {
  createContext,
  type ReactNode,
  useContext,
  useEffect,
  useEffectEvent,
  useMemo,
  useRef,
  useState,
} from "react";
import { useShortcuts } from "@/ui/shortcuts";
import { EdgeLegend, type LegendLine, LINK_LINE, RUN_LINES } from "./EdgeLegend";
import { stepAfterKey } from "./keyboard";
import styles from "./LaneCanvas.module.css";
import { LaneOverlay } from "./LaneOverlay";
import {
  edgePath,
  isInView,
  type Lane,
  type Layout,
  layoutLanes,
  linkPath,
  type Point,
  sideLinkPath,
} from "./layout";
import { type EdgeStatus, WaveEdge } from "./WaveEdge";
import { FIT, ZoomTools } from "./ZoomTools";

export type CanvasStep = { id: string; wave: number | null; height: number };
export type CanvasEdge = {
  id: string;
  source: string;
  target: string;
  isLink: boolean;
  /** Of a link, that of its socket. */
  colour?: string | undefined;
};

/** How much a card shows: a box in a view from far away, words, or its buttons too. */
export type CardDetail = "box" | "words" | "full";

type LaneCanvasProps = {
  /** The name of the canvas, for screen readers. */
  label: string;
  steps: readonly CanvasStep[];
  edges: readonly CanvasEdge[];
  renderStep: (id: string, detail: CardDetail) => ReactNode;
  /** A hook: the status of an edge. */
  useEdgeStatus: (id: string) => EdgeStatus;
  laneHeader: (lane: Lane) => ReactNode;
  /** What the lines between the cards mean, unless they are those of a run. */
  legend?: readonly LegendLine[];
  activeWave?: number | undefined;
  selectedId: string | null;
  onSelect: (id: string | null) => void;
  /** Keeps the wave at work in view. */
  isFollowing?: boolean;
  onFollow?: ((isFollowing: boolean) => void) | undefined;
};

type CanvasParts = Pick<LaneCanvasProps, "renderStep" | "useEdgeStatus">;

export const LANE_SIZES = { laneWidth: 344, cardWidth: 256, gap: 12 };
/** Graphs with more steps open at zoom 1 on the wave at work instead of whole, and move nothing. */
const MOST_STEPS_WHOLE = 300;
/** And so do graphs that would be smaller than this, where words are hard to read. */
const SMALLEST = 0.75;
/** What the headers of the lanes take of the view, in px. */
const HEADER = 52;
/** Below this zoom a card is a box. */
const FAR = 0.4;
/** Below this zoom a button of a card, of 32 px, is smaller than 24 px (WCAG 2.5.8). */
const SMALLEST_BUTTONS = 24 / 32;

const Parts = createContext<CanvasParts | null>(null);
const NODE_TYPES = { step: StepNode };
const EDGE_TYPES = { wave: FlowEdge };

/** The steps of a graph in lanes, one per wave: to look at, not to edit. */
export function LaneCanvas(props: LaneCanvasProps) {
  return (
    <ReactFlowProvider>
      <Parts.Provider value={useParts(props)}>
        <Canvas {...props} />
      </Parts.Provider>
    </ReactFlowProvider>
  );
}

function useParts({ renderStep, useEdgeStatus }: CanvasParts): CanvasParts {
  return useMemo(() => ({ renderStep, useEdgeStatus }), [renderStep, useEdgeStatus]);
}

function Canvas(props: LaneCanvasProps) {
  const { steps, edges, onSelect, legend = RUN_LINES } = props;
  const layout = useMemo(() => layoutLanes(steps, edges, LANE_SIZES), [steps, edges]);
  const nodes = useMemo(() => toNodes(steps, layout), [steps, layout]);
  const lines = useMemo(() => toLines(edges), [edges]);
  const isLarge = steps.length > MOST_STEPS_WHOLE;
  const viewport = useRef<HTMLDivElement>(null);
  useFollowing(layout, props);
  const onKeyDown = useKeys(layout, props, viewport);
  useViewKeys(props);
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset would be announced as a form
    <div
      className={styles.canvas}
      data-large={isLarge}
      role="group"
      aria-label={props.label}
      ref={viewport}
      onKeyDown={onKeyDown}
    >
      <ReactFlow
        nodes={nodes}
        edges={lines}
        nodeTypes={NODE_TYPES}
        edgeTypes={EDGE_TYPES}
        nodesDraggable={false}
        nodesConnectable={false}
        nodesFocusable={false}
        edgesFocusable={false}
        elementsSelectable={false}
        disableKeyboardA11y
        deleteKeyCode={null}
        onlyRenderVisibleElements
        panOnScroll
        minZoom={0.1}
        maxZoom={1.5}
        onPaneClick={() => onSelect(null)}
        onMoveStart={(event) => event && props.onFollow?.(false)}
        attributionPosition="bottom-center"
      >
        <LaneOverlay
          lanes={layout.lanes}
          laneWidth={LANE_SIZES.laneWidth}
          activeWave={props.activeWave}
          header={props.laneHeader}
        />
        <EdgeLegend lines={edges.some(({ isLink }) => isLink) ? [...legend, LINK_LINE] : legend} />
        <ZoomTools isFollowing={props.isFollowing} onFollow={props.onFollow} />
      </ReactFlow>
    </div>
  );
}

function toNodes(steps: readonly CanvasStep[], layout: Layout): Node[] {
  return steps.map(({ id, height }) => ({
    id,
    type: "step",
    position: layout.positions.get(id) ?? { x: 0, y: 0 },
    width: LANE_SIZES.cardWidth,
    height,
    // Cards out of sight are never drawn, so never measured; the view is fitted to all.
    measured: { width: LANE_SIZES.cardWidth, height },
    // xyflow lets clicks through elements that it can neither select nor drag.
    style: { pointerEvents: "all" },
    data: {},
    handles: [
      { type: "target", position: Position.Left, x: 0, y: PORT_Y, width: 0, height: 0 },
      {
        type: "source",
        position: Position.Right,
        x: LANE_SIZES.cardWidth,
        y: PORT_Y,
        width: 0,
        height: 0,
      },
    ],
  }));
}

/** Edges meet a card at the middle of its three lines, also where more is shown below. */
const PORT_Y = 41;

function toLines(edges: readonly CanvasEdge[]): Edge[] {
  return edges.map(({ id, source, target, isLink, colour }) => ({
    id,
    source,
    target,
    type: "wave",
    data: { isLink, colour },
  }));
}

function StepNode({ id }: NodeProps) {
  const parts = useContext(Parts);
  const detail = useStore(({ transform: [, , zoom] }) => detailAt(zoom));
  return (
    <>
      <Handle
        type="target"
        position={Position.Left}
        className={styles.port}
        isConnectable={false}
      />
      {parts?.renderStep(id, detail)}
      <Handle
        type="source"
        position={Position.Right}
        className={styles.port}
        isConnectable={false}
      />
    </>
  );
}

function detailAt(zoom: number): CardDetail {
  if (zoom < FAR) return "box";
  return zoom < SMALLEST_BUTTONS ? "words" : "full";
}

function FlowEdge({ id, target, data, sourceX, sourceY, targetX, targetY }: EdgeProps) {
  const parts = useContext(Parts);
  if (!parts) throw new Error("an edge is drawn outside its canvas");
  const status = parts.useEdgeStatus(id);
  const height = useStore((state) => state.nodeLookup.get(target)?.height ?? 0);
  const hasEnds = useStore((state) => state.transform[2] >= FAR);
  if (data?.isLink === true) {
    const colour = typeof data.colour === "string" ? data.colour : undefined;
    const { path, from, to } = linkOf({ sourceX, sourceY, targetX, targetY, height });
    return <WaveEdge isLink {...{ path, from, to, status, hasEnds, colour }} />;
  }
  const from = { x: sourceX, y: sourceY };
  const to = { x: targetX, y: targetY };
  return <WaveEdge path={edgePath(from, to)} {...{ from, to, status, hasEnds }} isLink={false} />;
}

type LinkEnds = Pick<EdgeProps, "sourceX" | "sourceY" | "targetX" | "targetY"> & {
  /** Of the card that uses the link. */
  height: number;
};

/** A link from the top of a card to the bottom of the one that uses it; past other cards, at their left. */
function linkOf({ sourceX, sourceY, targetX, targetY, height }: LinkEnds) {
  const { cardWidth, gap } = LANE_SIZES;
  const bottom = targetY - PORT_Y + height;
  const top = sourceY - PORT_Y;
  const left = sourceX - cardWidth;
  if (left === targetX && top - bottom > gap) {
    const [from, to] = [
      { x: left, y: sourceY },
      { x: targetX, y: bottom - LINK_ABOVE_BOTTOM },
    ];
    return { path: sideLinkPath(from, to), from, to };
  }
  const from = { x: sourceX - cardWidth / 2, y: top };
  const to = { x: targetX + cardWidth / 2, y: bottom };
  return { path: linkPath(from, to), from, to };
}

/** Where links meet the left side of a card: below its input. */
const LINK_ABOVE_BOTTOM = 14;

/** Opens the view, and keeps the lane at work in it. */
function useFollowing(layout: Layout, { activeWave, isFollowing, steps }: LaneCanvasProps) {
  const { setCenter, setViewport, getViewport, fitView, viewportInitialized } = useReactFlow();
  const width = useStore((state) => state.width);
  const height = useStore((state) => state.height);
  const [isOpen, setOpen] = useState(false);
  const open = useEffectEvent(() => {
    const isReadable = width / layout.width >= SMALLEST && height / layout.height >= SMALLEST;
    if (isReadable && steps.length <= MOST_STEPS_WHOLE) return fitView(FIT);
    const { x, y } = middleOf(activeWave ?? 1, layout, height) ?? { x: 0, y: 0 };
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
    const at = middleOf(activeWave, layout, height / zoom);
    if (!at) return;
    const half = (LANE_SIZES.cardWidth / 2) * zoom;
    const middle = at.x * zoom + x;
    if (middle - half >= 0 && middle + half <= width) return;
    void setCenter(at.x, at.y, { zoom, duration: 0 });
  }, [isOpen, isFollowing, activeWave, layout, width, height, setCenter, getViewport]);
}

/** The middle of the view on a lane: its first step is below the header where not all have room. */
function middleOf(wave: number, layout: Layout, viewHeight: number): Point | undefined {
  const lane = layout.lanes.find((each) => each.wave === wave);
  if (!lane) return undefined;
  const first = layout.positions.get(lane.ids[0] ?? "")?.y ?? 0;
  const isHigh = layout.height + HEADER > viewHeight;
  const y = isHigh ? first - HEADER + viewHeight / 2 : layout.height / 2;
  return { x: lane.x + LANE_SIZES.laneWidth / 2, y };
}

/** Moves along the edges and within the wave by arrow keys, and brings the card into view. */
function useKeys(
  layout: Layout,
  props: LaneCanvasProps,
  viewport: React.RefObject<HTMLDivElement | null>,
) {
  const { setCenter, getViewport } = useReactFlow();
  const [width, height] = [useStore((state) => state.width), useStore((state) => state.height)];
  return (event: React.KeyboardEvent) => {
    const next = stepAfterKey(event.key, props.selectedId, layout.lanes, props.edges);
    if (!next) return;
    event.preventDefault();
    props.onSelect(next);
    const at = layout.positions.get(next);
    const view = getViewport();
    const card = { width: LANE_SIZES.cardWidth, height: 2 * PORT_Y };
    if (at && !isInView({ ...at, ...card }, view, { top: HEADER, width, height })) {
      void setCenter(at.x + card.width / 2, at.y + PORT_Y, { zoom: view.zoom });
    }
    requestAnimationFrame(() => {
      const step = viewport.current?.querySelector(`[data-step="${CSS.escape(next)}"] button`);
      if (step instanceof HTMLElement) step.focus({ preventScroll: true });
    });
  };
}

function useViewKeys({ isFollowing, onFollow }: LaneCanvasProps) {
  const { fitView } = useReactFlow();
  const follow = onFollow && (() => onFollow(!isFollowing));
  useShortcuts("The steps", [
    { keys: "f", does: "Fit them into view", run: () => void fitView(FIT) },
    ...(follow ? [{ keys: "shift+f", does: "Follow the wave at work", run: follow }] : []),
    // With the focus on a step; see `stepAfterKey`.
    { keys: "arrowleft", does: "A step before" },
    { keys: "arrowright", does: "A step after" },
    { keys: "arrowup", does: "The step above in the wave" },
    { keys: "arrowdown", does: "The step below in the wave" },
  ]);
}
