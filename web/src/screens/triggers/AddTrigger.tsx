import { useState } from "react";
import { useCreateTrigger } from "@/api/mutations";
import { useFlow, useFlows } from "@/api/queries";
import { ErrorNote } from "@/screens/ErrorNote";
import { Button } from "@/ui/Button";
import { Dialog } from "@/ui/Dialog";
import { SelectField } from "@/ui/Field";
import styles from "./TriggersScreen.module.css";

/** Listens for an entry node of a flow. */
export function AddTrigger({ onClose }: { onClose: () => void }) {
  const flows = useFlows();
  const [flowId, setFlowId] = useState("");
  const [nodeId, setNodeId] = useState("");
  const nodes = useFlow(flowId || null).data?.graph.nodes ?? [];
  const create = useCreateTrigger();
  const save = () =>
    create.mutate({ plan_id: flowId, ...(nodeId && { node_id: nodeId }) }, { onSuccess: onClose });
  return (
    <Dialog
      open
      onClose={onClose}
      title="Listen for a flow"
      description="Its webhook, schedule or stream starts its live revision from then on."
      footer={
        <Button kind="primary" onClick={save} disabledReason={whyNot(flowId, create.isPending)}>
          Listen
        </Button>
      }
    >
      <div className={styles.form}>
        <SelectField
          label="Flow"
          value={flowId}
          onChange={(event) => {
            setFlowId(event.target.value);
            setNodeId("");
          }}
        >
          <option value="">Choose one</option>
          {flows.map((flow) => (
            <option key={flow.plan_id} value={flow.plan_id}>
              {flow.name}
            </option>
          ))}
        </SelectField>
        <SelectField
          label="Entry node"
          hint="Only needed where several can be listened for."
          value={nodeId}
          onChange={(event) => setNodeId(event.target.value)}
        >
          <option value="">The only one</option>
          {nodes.map((node) => (
            <option key={node.id} value={node.id}>
              {node.id} ({node.type})
            </option>
          ))}
        </SelectField>
        {create.error && <ErrorNote error={create.error} />}
      </div>
    </Dialog>
  );
}

function whyNot(flowId: string, isSaving: boolean): string | undefined {
  if (isSaving) return "Saving …";
  return flowId === "" ? "Choose a flow" : undefined;
}
