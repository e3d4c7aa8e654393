import { useState } from "react";
import { useNavigate } from "react-router";
import { errorText } from "@/api/errorText";
import { useCreateFlow } from "@/api/mutations";
import { Button } from "@/ui/Button";
import { Dialog } from "@/ui/Dialog";
import { TextArea, TextField } from "@/ui/Field";
import { Note } from "@/ui/Note";
import { showToast } from "@/ui/toasts";
import styles from "./SaveAsFlow.module.css";

type SaveAsFlowProps = {
  planId: string;
  title: string;
  /** Saves what an editor has not saved yet; false where that fails. */
  flush?: () => Promise<boolean>;
  onClose: () => void;
};

/** Gives the plan a name, to be run again with other inputs. */
export function SaveAsFlow({ planId, title, flush, onClose }: SaveAsFlowProps) {
  const [name, setName] = useState(title);
  const [description, setDescription] = useState("");
  const create = useCreateFlow();
  const navigate = useNavigate();
  const save = async () => {
    if (flush && !(await flush())) return;
    create.mutate(
      { name, ...(description && { description }), plan_id: planId },
      {
        onSuccess: (flow) => {
          showToast({
            text: `Saved as the flow “${flow.name}”.`,
            action: { label: "Open it", onSelect: () => navigate(`/flows/${flow.plan_id}`) },
          });
          onClose();
        },
      },
    );
  };
  return (
    <Dialog
      open
      onClose={onClose}
      title="Save as flow"
      description="A flow is a plan under a name, to be run again with other inputs."
      footer={
        <Button
          kind="primary"
          onClick={() => void save()}
          disabledReason={create.isPending ? "Saving …" : undefined}
        >
          Save the flow
        </Button>
      }
    >
      <div className={styles.form}>
        <TextField label="Name" value={name} onChange={(event) => setName(event.target.value)} />
        <TextArea
          label="What it is for"
          hint="Callers read it. Without it, the title of the plan."
          value={description}
          onChange={(event) => setDescription(event.target.value)}
        />
        {create.error && (
          <Note kind="error" alert>
            {errorText(create.error)}
          </Note>
        )}
      </div>
    </Dialog>
  );
}
