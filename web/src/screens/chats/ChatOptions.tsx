import { useTools } from "@/api/queries";
import { Chip } from "@/ui/Chip";
import { TextArea } from "@/ui/Field";
import { formatAmount } from "@/ui/format";
import { Popover } from "@/ui/Popover";
import { Checkbox } from "@/ui/Switch";
import styles from "./ChatOptions.module.css";

/** What a model is told beforehand, and what it may call. */
export type ChosenOptions = { readonly instructions: string; readonly tools: readonly string[] };

export const NO_OPTIONS: ChosenOptions = { instructions: "", tools: [] };

type ChatOptionsProps = { options: ChosenOptions; onChange: (options: ChosenOptions) => void };

/** The chip with the instructions and the tools of a new chat. */
export function ChatOptions({ options, onChange }: ChatOptionsProps) {
  const known = useTools().data?.tools ?? [];
  const { instructions, tools } = options;
  const toggle = (name: string, isChosen: boolean) =>
    onChange({
      ...options,
      tools: isChosen ? [...tools, name] : tools.filter((each) => each !== name),
    });
  return (
    <Popover label="Options" trigger={<Chip opens>{chipWords(options)}</Chip>}>
      <div className={styles.options}>
        <TextArea
          label="Instructions"
          hint="What the model should know and keep to, in each answer."
          value={instructions}
          onChange={(event) => onChange({ ...options, instructions: event.target.value })}
        />
        {known.length > 0 && (
          <fieldset className={styles.tools}>
            <legend>Tools that it may call</legend>
            {known.map(({ name }) => (
              <Checkbox
                key={name}
                label={name}
                checked={tools.includes(name)}
                onChange={(isChosen) => toggle(name, isChosen)}
              />
            ))}
          </fieldset>
        )}
      </div>
    </Popover>
  );
}

function chipWords({ instructions, tools }: ChosenOptions): string {
  const parts = [
    instructions.trim() && "instructions",
    tools.length > 0 && formatAmount(tools.length, "tool"),
  ].filter(Boolean);
  return parts.length === 0 ? "Options" : parts.join(", ");
}
