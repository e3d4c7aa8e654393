import { useCallback, useMemo } from "react";
import type { DocumentResponse } from "@/api/types";
import { EdgeLegend, type LegendLine } from "@/canvas/EdgeLegend";
import { LANE_SIZES, LaneCanvas } from "@/canvas/LaneCanvas";
import { LaneList, type ListedLane } from "@/canvas/LaneList";
import { CARD_HEIGHT, layoutLanes } from "@/canvas/layout";
import { CompareCard } from "@/screens/compare/CompareCard";
import styles from "@/screens/compare/CompareGraph.module.css";
import { changedWords, type Pair, type StepPair } from "@/screens/compare/comparison";
import { unionOf } from "@/screens/compare/graphUnion";
import { useBreakpoint } from "@/ui/useMedia";

interface CompareGraphProps {
  runs: Pair<DocumentResponse>;
  nodes: readonly StepPair[];
  chosen: string | null;
  onChoose: (path: string) => void;
}

const LEGEND: readonly LegendLine[] = [
  ["plan", "in both"],
  ["removed", "only in A"],
  ["added", "only in B"],
];

/** The graphs of two runs laid over each other, by waves; on a phone as a list. */
export function CompareGraph({ runs, nodes, chosen, onChoose }: CompareGraphProps) {
  const isPhone = useBreakpoint("phone");
  const union = useMemo(() => unionOf(runs, nodes, CARD_HEIGHT), [runs, nodes]);
  const byPath = useMemo(() => new Map(nodes.map((step) => [step.path, step])), [nodes]);
  const tabStop = chosen ?? nodes[0]?.path;
  const renderStep = useCallback(
    (id: string) => {
      const step = byPath.get(id);
      return (
        step && (
          <CompareCard
            step={step}
            isSelected={id === chosen}
            isTabStop={isPhone || id === tabStop}
            onSelect={onChoose}
          />
        )
      );
    },
    [byPath, chosen, isPhone, tabStop, onChoose],
  );
  const useEdgeStatus = useCallback(
    (id: string) => union.edgeStatuses.get(id) ?? "plan",
    [union.edgeStatuses],
  );
  const header = ({ ids }: ListedLane) => {
    const steps = ids.flatMap((id) => byPath.get(id) ?? []);
    const isSame = steps.every(({ change }) => change === "same");
    return <span>{isSame ? "the same" : `${changedWords(steps)} changed`}</span>;
  };
  return (
    <section className={styles.graph} aria-label="Graph of both runs">
      {isPhone ? (
        <LaneList
          lanes={layoutLanes(union.steps, union.edges, LANE_SIZES).lanes}
          header={header}
          renderStep={renderStep}
        />
      ) : (
        <LaneCanvas
          label="Steps of both runs by wave"
          steps={union.steps}
          edges={union.edges}
          renderStep={renderStep}
          useEdgeStatus={useEdgeStatus}
          laneHeader={header}
          selection={new Set(chosen === null ? [] : [chosen])}
          onSelect={([path]) => path !== undefined && onChoose(path)}
        >
          <EdgeLegend lines={LEGEND} edges={union.edges} />
        </LaneCanvas>
      )}
    </section>
  );
}
