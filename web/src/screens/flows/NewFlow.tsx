import { useState } from "react";
import { useNavigate } from "react-router";
import { useCreateFlow } from "@/api/mutations";
import { usePlans } from "@/api/queries";
import { ErrorNote } from "@/screens/ErrorNote";
import { FIRST_CHAT, FIRST_GRAPH } from "@/screens/editor/graphEdits";
import { Button } from "@/ui/Button";
import { Dialog } from "@/ui/Dialog";
import { SelectField, TextArea, TextField } from "@/ui/Field";
import styles from "./FlowScreen.module.css";

const CHAT = "chat";

/** Makes a flow of a plan, or one that begins with a start, or a chat, and one agent. */
export function NewFlow({ onClose }: { onClose: () => void }) {
  const plans = usePlans().data?.pages.flatMap((page) => page.plans) ?? [];
  const [source, setSource] = useState("");
  const planId = source === CHAT ? "" : source;
  const [name, setName] = useState("");
  const [description, setDescription] = useState("");
  const create = useCreateFlow();
  const navigate = useNavigate();
  const choose = (next: string) => {
    const before = plans.find((plan) => plan.plan_id === planId)?.title ?? "";
    setSource(next);
    if (name === before) setName(plans.find((plan) => plan.plan_id === next)?.title ?? "");
  };
  const save = () =>
    create.mutate(
      {
        name,
        ...(planId ? { plan_id: planId } : { graph: source === CHAT ? FIRST_CHAT : FIRST_GRAPH }),
        ...((description || !planId) && { description }),
      },
      {
        onSuccess: ({ plan_id }) =>
          navigate(planId ? `/flows/${plan_id}` : `/flows/${plan_id}/edit`),
      },
    );
  return (
    <Dialog
      open
      onClose={onClose}
      title="New flow"
      description="A flow is a plan under a name, to be run again with other inputs."
      footer={
        <Button kind="primary" onClick={save} disabledReason={whyNot(name, create.isPending)}>
          Save the flow
        </Button>
      }
    >
      <div className={styles.form}>
        <SelectField
          label="Begin with"
          value={source}
          onChange={(event) => choose(event.target.value)}
        >
          <option value="">A start and one agent</option>
          <option value={CHAT}>A chat and one agent</option>
          {plans.map((plan) => (
            <option key={plan.plan_id} value={plan.plan_id}>
              Plan: {plan.title || plan.user_prompt}
            </option>
          ))}
        </SelectField>
        <TextField label="Name" value={name} onChange={(event) => setName(event.target.value)} />
        <TextArea
          label="What it is for"
          hint={planId ? "Callers read it. Without it, the title of the plan." : undefined}
          value={description}
          onChange={(event) => setDescription(event.target.value)}
        />
        {create.error && <ErrorNote error={create.error} />}
      </div>
    </Dialog>
  );
}

function whyNot(name: string, isSaving: boolean): string | undefined {
  if (isSaving) return "Saving …";
  return name.trim() === "" ? "It needs a name" : undefined;
}
