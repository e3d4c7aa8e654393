import { useParams } from "react-router";
import { usePlan } from "@/api/queries";
import { Opening } from "./Opening";
import { PlanEditor } from "./PlanEditor";

const BACK = { to: "/", words: "New goal" };

/** The editor of a plan. It starts from the plan as it was opened. */
export function EditorScreen() {
  const { planId = "" } = useParams();
  const plan = usePlan(planId);
  if (plan.data) return <PlanEditor key={planId} plan={plan.data} />;
  return <Opening what="Plan" error={plan.error} back={BACK} />;
}
