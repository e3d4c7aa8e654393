import { memo, useCallback, useMemo } from "react";
import { useShallow } from "zustand/react/shallow";
import { useNodeTypes } from "@/api/queries";
import type { GraphDocument, NodeTypesResponse } from "@/api/types";
import { EdgeLegend, type LegendLine, RUN_LINES } from "@/canvas/EdgeLegend";
import type { CanvasEdge, CanvasStep } from "@/canvas/flowElements";
import { type CardDetail, LaneCanvas } from "@/canvas/LaneCanvas";
import { CARD_HEIGHT } from "@/canvas/layout";
import { linkColours } from "@/canvas/socketColours";
import type { EdgeStatus } from "@/canvas/WaveEdge";
import { readJson, writeJson } from "@/json";
import { useRun } from "@/stream/RunProvider";
import type { RunState } from "@/stream/runState";
import { edgeId, edgeStatus } from "./edgeStatus";
import type { Folding, Folds } from "./folding";
import { innerHeight } from "./innerSteps";
import { LaneWords } from "./LaneWords";
import { PendingStep } from "./PendingStep";
import { type PendingPlan, usePendingPlan } from "./pendingPlan";
import { RunStep } from "./RunStep";

type RunCanvasProps = Folding & {
  graph: GraphDocument;
  selectedPath: string | null;
  onSelect: (path: string | null) => void;
  isFollowing: boolean;
  onFollow: ((isFollowing: boolean) => void) | undefined;
};

const PENDING_LINES: readonly LegendLine[] = [
  ["delivered", "delivered"],
  ["waiting", "not yet"],
  ["removed", "dropped"],
  ["added", "new"],
];

/** Around what is inside a card. */
const FRAME_HEIGHT = 11;

/** The steps of a run as waves; each card and edge follows its own part of the run's state. */
export const RunCanvas = memo(function RunCanvas(props: RunCanvasProps) {
  const { graph, selectedPath, onSelect, folds, onFold, ...following } = props;
  const pending = usePendingPlan();
  const own = useRun(useShallow(nodesByWave));
  const shown = pending?.graph ?? graph;
  const waves = pending?.waves ?? own;
  const activeWave = useRun(waveAtWork);
  const heights = useRun((run) => heightsOf(graph, run, folds));
  const steps = useMemo(() => toSteps(shown, waves, heights), [shown, waves, heights]);
  const types = useNodeTypes().data;
  const edges = useMemo(() => toEdges(shown, types), [shown, types]);
  const useEdgeStatus = useMemo(() => edgeStatusHook(pending), [pending]);
  const selectedCard = selectedPath?.split("[")[0] ?? null;
  const tabStop = selectedCard ?? graph.nodes[0]?.id;
  const renderStep = useCallback(
    (id: string, detail: CardDetail) => {
      const step = pending?.steps.get(id);
      const choice = { selectedPath, isTabStop: id === tabStop, onSelect };
      if (step) return <PendingStep {...{ step, ...choice }} />;
      return <RunStep path={id} detail={detail} {...{ ...choice, folds, onFold }} />;
    },
    [pending, selectedPath, tabStop, onSelect, folds, onFold],
  );
  return (
    <LaneCanvas
      label="Steps by wave"
      steps={steps}
      edges={edges}
      renderStep={renderStep}
      useEdgeStatus={useEdgeStatus}
      laneHeader={(lane) => <LaneWords wave={lane.wave} pending={pending} />}
      activeWave={activeWave}
      selection={new Set(selectedCard === null ? [] : [selectedCard])}
      onSelect={([path = null]) => onSelect(path)}
      {...following}
    >
      <EdgeLegend lines={pending ? PENDING_LINES : RUN_LINES} edges={edges} />
    </LaneCanvas>
  );
});

function nodesByWave({ waves }: RunState): (readonly string[])[] {
  return waves.map(({ nodes }) => nodes);
}

/** Returns the wave that runs or, in a paused run, the first one in which a step asks something. */
function waveAtWork(run: RunState): number | undefined {
  if (run.status === "executing") return run.wave.current;
  const asking = new Set([...run.requests.values()].map(({ path }) => path?.split("[")[0]));
  return run.waves.find((wave) => wave.nodes.some((id) => asking.has(id)))?.number;
}

/** Returns the heights of the cards that are unfolded: a text, which is equal where they are. */
function heightsOf(graph: GraphDocument, run: RunState, folds: Folds): string {
  const heights = graph.nodes.flatMap(({ id }) => {
    const inside = innerHeight(run, id, folds);
    return inside > 0 ? [[id, CARD_HEIGHT + FRAME_HEIGHT + inside]] : [];
  });
  return writeJson(Object.fromEntries(heights));
}

function toSteps(
  graph: GraphDocument,
  waves: readonly (readonly string[])[],
  heights: string,
): CanvasStep[] {
  const unfolded: Record<string, number> = readJson(heights);
  const waveOf = new Map(waves.flatMap((ids, index) => ids.map((id) => [id, index + 1])));
  return graph.nodes.map(({ id }) => ({
    id,
    wave: waveOf.get(id) ?? null,
    height: unfolded[id] ?? CARD_HEIGHT,
  }));
}

function toEdges(graph: GraphDocument, types: NodeTypesResponse | undefined): CanvasEdge[] {
  const colourOf = linkColours(graph, types);
  return graph.edges.map((edge, index) => ({
    id: edgeId(edge, index),
    source: edge.source,
    target: edge.target,
    isLink: edge.data.channel === "link",
    colour: colourOf(edge),
  }));
}

function edgeStatusHook(pending: PendingPlan | null) {
  return function useEdgeStatus(id: string): EdgeStatus {
    return useRun((run) => pending?.edges.get(id) ?? edgeStatus(run, id));
  };
}
