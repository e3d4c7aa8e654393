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
            onClick={() => remove.mutate(flow.plan_id, { onSuccess: onDeleted })}
          >
            Delete the flow
          </Button>
        </>
      }
    >
      <div className={styles.form}>
        <p>The flow and all its versions are deleted. Its runs stay.</p>
        {remove.error && <ErrorNote error={remove.error} />}
      </div>
    </Dialog>
  );
}
