import { ApiError } from "@/api/http";
import { useDeletePlan } from "@/api/mutations";
import { ErrorNote } from "@/screens/ErrorNote";
import { Button } from "@/ui/Button";
import { Dialog } from "@/ui/Dialog";
import styles from "./FlowScreen.module.css";

type DeletePlanProps = {
  plan: { plan_id: string; name: string | null };
  /** What it is called, also without a name. */
  title: string;
  onClose: () => void;
  onDeleted: () => void;
};

/** Asks before a plan is deleted, with a name or without. */
export function DeletePlan({ plan, title, onClose, onDeleted }: DeletePlanProps) {
  const remove = useDeletePlan();
  const isInUse = remove.error instanceof ApiError && remove.error.code === "flow-in-use";
  const kind = plan.name === null ? "plan" : "flow";
  return (
    <Dialog
      open
      onClose={onClose}
      title={`Delete ${title}?`}
      footer={
        <>
          <Button onClick={onClose}>Keep it</Button>
          <Button
            kind="danger"
            disabledReason={remove.isPending ? "Deleting …" : undefined}
            onClick={() =>
              remove.mutate({ planId: plan.plan_id, force: isInUse }, { onSuccess: onDeleted })
            }
          >
            {isInUse ? "Delete it with these" : `Delete the ${kind}`}
          </Button>
        </>
      }
    >
      <div className={styles.form}>
        <p>The {kind} and its revisions are deleted. Its runs stay.</p>
        {remove.error && <ErrorNote error={remove.error} />}
      </div>
    </Dialog>
  );
}
