import { memo } from "react";
import { tokensOf } from "@/api/executionSummary";
import type { DocumentNode } from "@/api/types";
import type { Change } from "@/canvas/ChangeMark";
import { UnionCard } from "@/canvas/UnionCard";
import styles from "@/screens/compare/CompareCard.module.css";
import { type StepPair, timeWords } from "@/screens/compare/comparison";
import { SIDES, type Side, SideMark } from "@/screens/compare/SideMark";
import { formatAmount } from "@/ui/format";
import { STATUS_WORDS, Status } from "@/ui/Status";

interface CompareCardProps {
  step: StepPair;
  isSelected: boolean;
  /** Whether Tab stops here; one card of a canvas has it. */
  isTabStop: boolean;
  onSelect: (path: string) => void;
}

const CHANGE_WORDS: Record<Change, string> = {
  same: "same",
  changed: "changed",
  only_a: "only in A",
  only_b: "only in B",
};

/** A step of two runs in three lines: its name and the change, then its status in each run. */
export const CompareCard = memo(function CompareCard({ step, ...choice }: CompareCardProps) {
  const { path, name, change, nodes } = step;
  return (
    <UnionCard
      id={path}
      type={nodes[1]?.type ?? nodes[0]?.type ?? ""}
      word={CHANGE_WORDS[change]}
      label={spokenLabel(step)}
      {...{ name, change }}
      {...choice}
    >
      {SIDES.map((side, index) => (
        <SideLine key={side} side={side} node={nodes[index]} />
      ))}
    </UnionCard>
  );
});

function SideLine({ side, node }: { side: Side; node: DocumentNode | undefined }) {
  const tokens = node ? tokensOf(node.usage) : 0;
  return (
    <div className={styles.side}>
      <SideMark side={side} small />
      {node ? <Status status={node.status} /> : <span>not there</span>}
      <span className={styles.meta}>{tokens > 0 && formatAmount(tokens, "token")}</span>
      <span className={styles.duration}>{node && timeWords(node)}</span>
    </div>
  );
}

function spokenLabel({ name, change, nodes }: StepPair): string {
  const statuses = SIDES.flatMap((side, index) => {
    const node = nodes[index];
    return node ? `${side} ${STATUS_WORDS[node.status].toLowerCase()}` : [];
  });
  return [name, CHANGE_WORDS[change], ...statuses].join(", ");
}
