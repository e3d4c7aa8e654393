import { useParams } from "react-router";
import { errorText } from "@/api/errorText";
import { usePlan } from "@/api/queries";
import { Note } from "@/ui/Note";
import { Skeleton } from "@/ui/Skeleton";
import styles from "./EditorScreen.module.css";
import { PlanEditor } from "./PlanEditor";

/** The editor of a plan. It starts from the plan as it was opened. */
export function EditorScreen() {
  const { planId = "" } = useParams();
  const plan = usePlan(planId);
  if (plan.data) return <PlanEditor key={planId} plan={plan.data} />;
  return (
    <div className={styles.message}>
      {plan.error ? (
        <Note kind="error">{errorText(plan.error)}</Note>
      ) : (
        <Skeleton label="Loading the plan" lines={6} />
      )}
    </div>
  );
}
