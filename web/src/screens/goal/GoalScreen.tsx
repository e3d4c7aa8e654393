import { useQueryClient } from "@tanstack/react-query";
import { lazy, Suspense, useEffect } from "react";
import { useNavigate, useSearchParams } from "react-router";
import { queryKeys } from "@/api/queryKeys";
import styles from "@/screens/goal/GoalScreen.module.css";
import { useGoalDraft } from "@/screens/goal/goalDraft";
import { NewGoal } from "@/screens/goal/NewGoal";
import { usePlanWriting } from "@/screens/goal/planWriting";

const loadPlan = () => import("@/screens/goal/PlanOfGoal");
const PlanOfGoal = lazy(async () => ({ default: (await loadPlan()).PlanOfGoal }));

/** From a goal to a plan: the question, the plan while it is written, the plan before it runs. */
export function GoalScreen() {
  const writing = usePlanWriting((state) => state.writing);
  const [params] = useSearchParams();
  const navigate = useNavigate();
  const planId = params.get("plan");
  const queries = useQueryClient();
  const hasGoal = useGoalDraft(({ prompt }) => prompt !== "");
  const written = writing?.plan;
  const wasAnswered = writing?.request.answers !== undefined;
  useEffect(() => {
    if (!written) return;
    queries.setQueryData(queryKeys.plan(written.plan_id), written); // shown without being loaded
    const asks = !wasAnswered && written.questions.some(({ assumed }) => assumed);
    usePlanWriting.setState({ writing: null, asking: asks ? written.plan_id : null });
    navigate(`/?plan=${written.plan_id}`);
  }, [written, wasAnswered, navigate, queries]);
  useEffect(() => {
    usePlanWriting.setState({ isShown: true });
    return () => usePlanWriting.setState({ isShown: false });
  }, []);
  useEffect(() => {
    if (hasGoal) void loadPlan(); // while the goal is written, so that its plan is shown at once
  }, [hasGoal]);
  if (!planId && !writing) return <NewGoal />;
  return (
    <Suspense fallback={<div className={styles.page} />}>
      <PlanOfGoal planId={planId} writing={writing} />
    </Suspense>
  );
}
