import { useCallback, useMemo } from "react";
import type { DocumentResponse, GraphDocument } from "@/api/types";
import type { LegendLine } from "@/canvas/EdgeLegend";
import { unionOf } from "@/canvas/graphUnion";
import type { ListedLane } from "@/canvas/LaneList";
import { UnionGraph } from "@/canvas/UnionGraph";
import { CompareCard } from "@/screens/compare/CompareCard";
import styles from "@/screens/compare/CompareGraph.module.css";
import { changedWords, type Pair, type StepPair } from "@/screens/compare/comparison";

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

const NO_GRAPH: GraphDocument = { nodes: [], edges: [] };

function graphOf(run: DocumentResponse): GraphDocument {
  return (run.graph as GraphDocument | null) ?? NO_GRAPH;
}

/** The graphs of two runs laid over each other. */
export function CompareGraph({ runs, nodes, chosen, onChoose }: CompareGraphProps) {
  const union = useMemo(() => {
    const ids = nodes.map(({ path }) => path);
    return unionOf([graphOf(runs[0]), graphOf(runs[1])], ids);
  }, [runs, nodes]);
  const byPath = useMemo(() => new Map(nodes.map((step) => [step.path, step])), [nodes]);
  const renderStep = useCallback(
    (id: string, isTabStop: boolean) => {
      const step = byPath.get(id);
      return (
        step && (
          <CompareCard {...{ step, isTabStop }} isSelected={id === chosen} onSelect={onChoose} />
        )
      );
    },
    [byPath, chosen, onChoose],
  );
  const header = ({ ids }: ListedLane) => {
    const steps = ids.flatMap((id) => byPath.get(id) ?? []);
    const isSame = steps.every(({ change }) => change === "same");
    return <span>{isSame ? "the same" : `${changedWords(steps)} changed`}</span>;
  };
  return (
    <section className={styles.graph} aria-label="Graph of both runs">
      <UnionGraph
        label="Steps of both runs by wave"
        legend={LEGEND}
        {...{ union, header, renderStep, chosen, onChoose }}
      />
    </section>
  );
}
