import { useState } from "react";
import { ApiError } from "@/api/http";
import { useUpdateFlow } from "@/api/mutations";
import type { FlowResponse } from "@/api/types";
import { ErrorNote } from "@/screens/ErrorNote";
import { Button } from "@/ui/Button";
import { Dialog } from "@/ui/Dialog";
import { TextArea, TextField } from "@/ui/Field";
import styles from "./FlowScreen.module.css";

/** Changes what a flow is called, and what it is for. */
export function RenameFlow({ flow, onClose }: { flow: FlowResponse; onClose: () => void }) {
  const [name, setName] = useState(flow.name);
  const [description, setDescription] = useState(flow.description);
  const update = useUpdateFlow(flow.plan_id);
  const isInUse = update.error instanceof ApiError && update.error.code === "flow-in-use";
  return (
    <Dialog
      open
      onClose={onClose}
      title="Name and purpose"
      footer={
        <Button
          kind="primary"
          disabledReason={update.isPending ? "Saving …" : undefined}
          onClick={() =>
            update.mutate({ force: isInUse, body: { name, description } }, { onSuccess: onClose })
          }
        >
          {isInUse ? "Rename it, and remove these" : "Save"}
        </Button>
      }
    >
      <div className={styles.form}>
        <TextField label="Name" value={name} onChange={(event) => setName(event.target.value)} />
        <TextArea
          label="What it is for"
          value={description}
          onChange={(event) => setDescription(event.target.value)}
        />
        {update.error && <ErrorNote error={update.error} />}
      </div>
    </Dialog>
  );
}
