import { type ReactNode, useCallback } from "react";
import { useBreakpoint } from "@/ui/useMedia";
import { EdgeLegend, type LegendLine } from "./EdgeLegend";
import type { GraphUnion } from "./graphUnion";
import { LANE_SIZES, LaneCanvas } from "./LaneCanvas";
import { LaneList, type ListedLane } from "./LaneList";
import { layoutLanes } from "./layout";

type UnionGraphProps = {
  /** The name of the canvas, for screen readers. */
  label: string;
  union: GraphUnion;
  legend: readonly LegendLine[];
  /** What stands beside "Wave n". */
  header: (lane: ListedLane) => ReactNode;
  /** Draws a card; `isTabStop` says whether Tab stops there. */
  renderStep: (id: string, isTabStop: boolean) => ReactNode;
  chosen: string | null;
  onChoose: (id: string) => void;
};

/** Two graphs laid over each other, by waves; on a phone as a list. */
export function UnionGraph(props: UnionGraphProps) {
  const { label, union, legend, header, renderStep, chosen, onChoose } = props;
  const isPhone = useBreakpoint("phone");
  const tabStop = chosen ?? union.steps[0]?.id;
  const render = useCallback(
    (id: string) => renderStep(id, isPhone || id === tabStop),
    [renderStep, isPhone, tabStop],
  );
  const useEdgeStatus = useCallback(
    (id: string) => union.edgeStatuses.get(id) ?? "plan",
    [union.edgeStatuses],
  );
  if (isPhone) {
    const { lanes } = layoutLanes(union.steps, union.edges, LANE_SIZES);
    return <LaneList lanes={lanes} header={header} renderStep={render} />;
  }
  return (
    <LaneCanvas
      label={label}
      steps={union.steps}
      edges={union.edges}
      renderStep={render}
      useEdgeStatus={useEdgeStatus}
      laneHeader={header}
      selection={new Set(chosen === null ? [] : [chosen])}
      onSelect={([id]) => id !== undefined && onChoose(id)}
    >
      <EdgeLegend lines={legend} edges={union.edges} />
    </LaneCanvas>
  );
}
