import { errorText } from "@/api/errorText";
import { titleOf } from "@/api/executionSummary";
import { useDeleteExecution } from "@/api/mutations";
import type { ExecutionSummary } from "@/api/types";
import { Button } from "@/ui/Button";
import { Dialog } from "@/ui/Dialog";
import { Note } from "@/ui/Note";
import { showToast } from "@/ui/toasts";

interface DeleteRunDialogProps {
  /** The run that is asked about; null while nothing is. */
  run: ExecutionSummary | null;
  onClose: () => void;
  onDeleted: (executionId: string) => void;
}

/** Asks before a run is deleted: nothing brings it back. */
export function DeleteRunDialog({ run, onClose, onDeleted }: DeleteRunDialogProps) {
  const remove = useDeleteExecution();
  const close = () => {
    remove.reset();
    onClose();
  };
  const confirm = () =>
    run &&
    remove.mutate(run.execution_id, {
      onSuccess: () => {
        showToast({ text: `Deleted ${titleOf(run)}` });
        onDeleted(run.execution_id);
        close();
      },
    });
  return (
    <Dialog
      open={run !== null}
      onClose={close}
      title="Delete this run"
      footer={
        <>
          <Button onClick={close}>Keep it</Button>
          <Button
            kind="danger"
            icon="trash"
            onClick={confirm}
            disabledReason={remove.isPending ? "Deleting" : undefined}
          >
            Delete
          </Button>
        </>
      }
    >
      <p>
        <b>{run && titleOf(run)}</b> goes with its events, results and stored JSON. Its plan stays.
        Nothing brings the run back.
      </p>
      {remove.error && (
        <Note kind="error" alert>
          {errorText(remove.error)}
        </Note>
      )}
    </Dialog>
  );
}
