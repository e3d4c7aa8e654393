import { useFlows } from "@/api/queries";
import { nameOf } from "@/screens/flows/planWords";
import { Chip } from "@/ui/Chip";
import { Menu } from "@/ui/Menu";

type FlowPickerProps = {
  /** Null: a model answers. */
  flowId: string | null;
  onChange: (flowId: string | null) => void;
};

/** Who answers: a model, or one of the flows. */
export function FlowPicker({ flowId, onChange }: FlowPickerProps) {
  const flows = useFlows();
  const chosen = flows.find((flow) => flow.plan_id === flowId);
  if (flows.length === 0) return null;
  return (
    <Menu
      align="start"
      trigger={
        <Chip opens icon={chosen ? "flow" : "model"}>
          <span className="visually-hidden">Answers: </span>
          <b>{chosen ? nameOf(chosen) : "A model"}</b>
        </Chip>
      }
      items={[
        { label: "A model", icon: "model", checked: !chosen, onSelect: () => onChange(null) },
        "line",
        ...flows.map((flow) => ({
          label: nameOf(flow),
          icon: "flow" as const,
          checked: flow === chosen,
          onSelect: () => onChange(flow.plan_id),
        })),
      ]}
    />
  );
}
