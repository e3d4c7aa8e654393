import { useDeleteTrigger } from "@/api/mutations";
import type { TriggerResponse } from "@/api/types";
import { ErrorNote } from "@/screens/ErrorNote";
import { Button } from "@/ui/Button";
import { Dialog } from "@/ui/Dialog";

/** Asks before a trigger is deleted. */
export function DeleteTrigger(props: { trigger: TriggerResponse; onClose: () => void }) {
  const { trigger, onClose } = props;
  const remove = useDeleteTrigger();
  return (
    <Dialog
      open
      onClose={onClose}
      title={`Delete the ${trigger.kind} of ${trigger.flow}?`}
      footer={
        <>
          <Button onClick={onClose}>Keep it</Button>
          <Button
            kind="danger"
            disabledReason={remove.isPending ? "Deleting …" : undefined}
            onClick={() => remove.mutate(trigger.trigger_id, { onSuccess: onClose })}
          >
            Delete the trigger
          </Button>
        </>
      }
    >
      <p>Nothing is listened for any more. The flow and its runs stay.</p>
      {remove.error && <ErrorNote error={remove.error} />}
    </Dialog>
  );
}
