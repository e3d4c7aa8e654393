import { ApiError } from "@/api/http";
import { useDeleteFlow } from "@/api/mutations";
import { ErrorNote } from "@/screens/ErrorNote";
import { Button } from "@/ui/Button";
import { Dialog } from "@/ui/Dialog";
import styles from "./FlowScreen.module.css";

type DeleteFlowProps = {
  flow: { plan_id: string; name: string };
  onClose: () => void;
  onDeleted: () => void;
};

/** Asks before a flow is deleted. */
export function DeleteFlow({ flow, onClose, onDeleted }: DeleteFlowProps) {
  const remove = useDeleteFlow();
  const isInUse = remove.error instanceof ApiError && remove.error.code === "flow-in-use";
  return (
    <Dialog
      open
      onClose={onClose}
      title={`Delete ${flow.name}?`}
      footer={
        <>
          <Button onClick={onClose}>Keep it</Button>
          <Button
            kind="danger"
            disabledReason={remove.isPending ? "Deleting …" : undefined}
            onClick={() =>
              remove.mutate({ flowId: flow.plan_id, force: isInUse }, { onSuccess: onDeleted })
            }
          >
            {isInUse ? "Delete it with these" : "Delete the flow"}
          </Button>
        </>
      }
    >
      <div className={styles.form}>
        <p>The flow and its revisions are deleted. Its runs stay.</p>
        {remove.error && <ErrorNote error={remove.error} />}
      </div>
    </Dialog>
  );
}
