import { FailedPlan } from "@/screens/goal/FailedPlan";
import type { PlanWriting } from "@/screens/goal/planWriting";
import { WritingPlan } from "@/screens/goal/WritingPlan";
import { WrittenPlan } from "@/screens/goal/WrittenPlan";

type PlanOfGoalProps = {
  /** A plan that is written; else it is being written, or that failed. */
  planId: string | null;
  writing: PlanWriting | null;
};

/** What became of a goal: the plan before it runs, while it is written, or why there is none. */
export function PlanOfGoal({ planId, writing }: PlanOfGoalProps) {
  if (planId) return <WrittenPlan planId={planId} />;
  if (!writing) return null;
  return writing.error ? (
    <FailedPlan writing={writing} error={writing.error} />
  ) : (
    <WritingPlan writing={writing} />
  );
}
