import { useQueryClient } from "@tanstack/react-query";
import { useEffect } from "react";
import { useNavigate, useSearchParams } from "react-router";
import { queryKeys } from "@/api/queryKeys";
import { FailedPlan } from "@/screens/goal/FailedPlan";
import { NewGoal } from "@/screens/goal/NewGoal";
import { usePlanWriting } from "@/screens/goal/planWriting";
import { WritingPlan } from "@/screens/goal/WritingPlan";
import { WrittenPlan } from "@/screens/goal/WrittenPlan";

/** From a goal to a plan: the question, the plan while it is written, the plan before it runs. */
export function GoalScreen() {
  const writing = usePlanWriting((state) => state.writing);
  const [params] = useSearchParams();
  const navigate = useNavigate();
  const planId = params.get("plan");
  const queries = useQueryClient();
  const written = writing?.plan;
  useEffect(() => {
    if (!written) return;
    queries.setQueryData(queryKeys.plan(written.plan_id), written); // shown without being loaded
    usePlanWriting.setState({ writing: null });
    navigate(`/?plan=${written.plan_id}`);
  }, [written, navigate, queries]);
  useEffect(() => {
    usePlanWriting.setState({ isShown: true });
    return () => usePlanWriting.setState({ isShown: false });
  }, []);
  if (planId) return <WrittenPlan planId={planId} />;
  if (!writing) return <NewGoal />;
  return writing.error ? (
    <FailedPlan writing={writing} error={writing.error} />
  ) : (
    <WritingPlan writing={writing} />
  );
}
