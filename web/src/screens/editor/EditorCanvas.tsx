import { Background, type Connection, MiniMap, type OnConnectEnd } from "@xyflow/react";
import { useCallback, useMemo } from "react";
import type { EdgeDocument, GraphDocument } from "@/api/types";
import { cardText } from "@/canvas/cardText";
import { type CanvasEdge, type CanvasStep, type CardDetail, LaneCanvas } from "@/canvas/LaneCanvas";
import type { Point } from "@/canvas/layout";
import { plannedNodes } from "@/canvas/planLayout";
import type { EdgeStatus } from "@/canvas/WaveEdge";
import { showToast } from "@/ui/toasts";
import type { DroppedWire } from "./AddStep";
import { EditorNode, type EditorNodeProps } from "./EditorNode";
import styles from "./EditorScreen.module.css";
import { connect, moveNodes, positionOf, refusalOf } from "./graphEdits";
import { PortLegend } from "./PortLegend";
import {
  drawnPorts,
  edgeHandle,
  findPort,
  NODE_WIDTH,
  nodeHandles,
  nodeHeight,
  type PortLookup,
  withWiredPorts,
} from "./ports";

const SIZES = { laneWidth: 268, cardWidth: NODE_WIDTH, gap: 28 };
/** What the toolbar takes above the headers of the lanes, in px. */
const TOOLS_HEIGHT = 52;
const MINI_MAP = { width: 148, height: 84 };

export type NodeMarks = Pick<EditorNodeProps, "change" | "problem">;

type EditorCanvasProps = {
  graph: GraphDocument;
  onChange: (graph: GraphDocument, kind?: string) => void;
  selection: ReadonlySet<string>;
  onSelect: (ids: Iterable<string>) => void;
  /** Selects a step and moves the focus to its form. */
  onOpen: (id: string) => void;
  portsOf: PortLookup;
  colourOf: (type: string) => string;
  /** The colour of a link. */
  linkColourOf: (edge: EdgeDocument) => string | undefined;
  marksOf: (id: string) => NodeMarks;
  /** A wire was dropped where nothing is. */
  onDrop: (dropped: DroppedWire) => void;
};

type NodeView = Pick<
  EditorNodeProps,
  "node" | "ports" | "text" | "wired" | "colourOf" | "change" | "problem"
>;

/** The steps of a plan in lanes, to be moved, wired and removed. */
export function EditorCanvas(props: EditorCanvasProps) {
  const { graph, selection, onSelect, onOpen, onChange, linkColourOf } = props;
  const views = useNodeViews(props);
  const steps = useMemo(() => toSteps(graph, views), [graph, views]);
  const edges = useMemo(() => toEdges(graph, linkColourOf), [graph, linkColourOf]);
  const tabStop = (graph.nodes.find(({ id }) => selection.has(id)) ?? graph.nodes[0])?.id;
  const select = useCallback((id: string) => onSelect([id]), [onSelect]);
  const renderStep = useCallback(
    (id: string, detail: CardDetail) => {
      const view = views.get(id);
      return (
        view && (
          <EditorNode
            {...view}
            isBox={detail === "box"}
            isSelected={selection.has(id)}
            isTabStop={id === tabStop}
            onSelect={select}
            onOpen={onOpen}
          />
        )
      );
    },
    [views, selection, tabStop, select, onOpen],
  );
  return (
    <LaneCanvas
      label="Steps of the plan"
      steps={steps}
      edges={edges}
      sizes={SIZES}
      renderStep={renderStep}
      useEdgeStatus={usePlanned}
      laneHeader={({ ids }) => <span>{ids.length === 1 ? "1 step" : `${ids.length} steps`}</span>}
      selection={selection}
      onSelect={onSelect}
      editing={{
        onMove: (places, kind) => onChange(moveNodes(graph, places), kind),
        ...connecting(props),
      }}
      toolsHeight={TOOLS_HEIGHT}
      zoomAt="bottom-left"
    >
      <Background gap={20} color="var(--grid-dot)" />
      <PortLegend views={views} colourOf={props.colourOf} />
      <MiniMap
        position="bottom-right"
        className={styles.miniMap}
        style={MINI_MAP}
        nodeColor="var(--line-control)"
        maskColor="transparent"
        pannable
        zoomable
        ariaLabel="Overview"
      />
    </LaneCanvas>
  );
}

/** No run has touched an edge of a plan. */
function usePlanned(): EdgeStatus {
  return "plan";
}

function useNodeViews({ graph, portsOf, colourOf, marksOf }: EditorCanvasProps) {
  return useMemo(() => {
    const taken = new Map<string, Set<string>>();
    const given = new Map<string, Set<string>>();
    for (const edge of graph.edges) {
      handlesOf(given, edge.source).add(edgeHandle(edge, "source"));
      handlesOf(taken, edge.target).add(edgeHandle(edge, "target"));
    }
    return new Map(
      graph.nodes.map((node): [string, NodeView] => {
        const [inputs, outputs] = [handlesOf(taken, node.id), handlesOf(given, node.id)];
        const handles = new Set([...inputs, ...outputs]);
        const ports = drawnPorts(withWiredPorts(portsOf(node), inputs, outputs), handles);
        const text = cardText(node);
        return [node.id, { node, ports, text, wired: handles, colourOf, ...marksOf(node.id) }];
      }),
    );
  }, [graph, portsOf, colourOf, marksOf]);
}

function handlesOf(wired: Map<string, Set<string>>, id: string): Set<string> {
  const handles = wired.get(id) ?? new Set<string>();
  wired.set(id, handles);
  return handles;
}

/** By waves, but for the steps that a person has put elsewhere. */
function toSteps(graph: GraphDocument, views: ReadonlyMap<string, NodeView>): CanvasStep[] {
  const heightOf = (id: string) => {
    const view = views.get(id);
    return view ? nodeHeight(view.ports, view.text !== "") : 0;
  };
  const places = new Map(graph.nodes.map((node) => [node.id, positionOf(node) ?? undefined]));
  return plannedNodes(graph, heightOf).map((step) => {
    const view = views.get(step.id);
    const handles = view && nodeHandles(view.ports, view.text !== "");
    return { ...step, place: places.get(step.id), ...(handles && { handles }) };
  });
}

function toEdges(graph: GraphDocument, colourOf: EditorCanvasProps["linkColourOf"]): CanvasEdge[] {
  return graph.edges.map((edge, index) => ({
    id: edge.id ?? `edge ${index}`,
    source: edge.source,
    target: edge.target,
    sourceHandle: edgeHandle(edge, "source"),
    targetHandle: edgeHandle(edge, "target"),
    isLink: edge.data.channel === "link",
    colour: colourOf(edge),
  }));
}

/** Wires are drawn from port to port; one that cannot be says why. */
function connecting({ graph, onChange, onDrop, portsOf }: EditorCanvasProps) {
  const node = (id: string) => graph.nodes.find((each) => each.id === id);
  const ends = (
    connection: Pick<Connection, "source" | "target" | "sourceHandle" | "targetHandle">,
  ) => {
    const source = findPort(node(connection.source), "source", connection.sourceHandle, portsOf);
    const target = findPort(node(connection.target), "target", connection.targetHandle, portsOf);
    return source && target ? { source, target } : null;
  };
  const onConnect = (connection: Connection) => {
    const found = ends(connection);
    if (!found) return;
    const refusal = refusalOf(found.source, found.target);
    if (refusal) showToast({ kind: "error", text: refusal });
    else onChange(connect(graph, found.source, found.target));
  };
  const drop = ({ nodeId, type: side, id }: FromHandle, at: Point) => {
    const end = findPort(node(nodeId), side, id, portsOf);
    if (end) onDrop({ start: { ...end, side }, at });
  };
  const onConnectEnd: OnConnectEnd = (event, { fromHandle, toHandle, toNode }) => {
    if (!fromHandle) return;
    if (!toHandle && !toNode) drop(fromHandle, pointOf(event));
    else if (fromHandle.type === toHandle?.type) {
      const kind = fromHandle.type === "source" ? "outputs" : "inputs";
      showToast({
        kind: "error",
        text: `Two ${kind} cannot be connected: draw from an output to an input.`,
      });
    }
  };
  return { onConnect, onConnectEnd };
}

/** The handle that a wire was drawn from. */
type FromHandle = NonNullable<Parameters<OnConnectEnd>[1]["fromHandle"]>;

/** Returns where a pointer was let go, in the window. */
function pointOf(event: MouseEvent | TouchEvent): Point {
  const pointer = "changedTouches" in event ? event.changedTouches[0] : event;
  return { x: pointer?.clientX ?? 0, y: pointer?.clientY ?? 0 };
}
