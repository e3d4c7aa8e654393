import { useId, useState } from "react";
import { useProviders } from "@/api/queries";
import type { ProviderDetails } from "@/api/types";
import { SelectField, TextField } from "@/ui/Field";
import styles from "./ProviderFields.module.css";
import type { Import, Imported } from "./useImport";

/** The provider and the model that are asked in place of those that a file names. */
export function ProviderFields({ imported, task }: { imported: Imported; task: Import }) {
  const providers = (useProviders().data?.details ?? []).filter((each) => each.available);
  const { provider, model } = imported.options;
  const chosen = providers.find(({ name }) => name === provider);
  if (providers.length === 0) return null;
  return (
    <div className={styles.fields}>
      <SelectField
        label="Provider"
        value={chosen?.name ?? ""}
        onChange={(event) =>
          void task.again(imported, { provider: event.target.value || null, model: null })
        }
      >
        <option value="">as in the file</option>
        {providers.map(({ name }) => (
          <option key={name} value={name}>
            {name}
          </option>
        ))}
      </SelectField>
      {chosen && (
        <ModelField
          key={chosen.name}
          provider={chosen}
          model={model}
          onChange={(next) => void task.again(imported, { model: next })}
        />
      )}
    </div>
  );
}

type ModelFieldProps = {
  provider: ProviderDetails;
  model: string | null;
  onChange: (model: string | null) => void;
};

/** A model of a provider: one of its list, or any name where it takes others. */
function ModelField({ provider, model, onChange }: ModelFieldProps) {
  const { models, open_models, default_model } = provider;
  const [text, setText] = useState(model ?? "");
  const listId = useId();
  const usual = default_model ? `its default, ${default_model}` : "its default";
  const finish = () => {
    const next = text.trim() || null;
    if (next !== model) onChange(next);
  };
  if (open_models) {
    return (
      <>
        <TextField
          label="Model"
          value={text}
          placeholder={usual}
          maxLength={200}
          list={listId}
          autoComplete="off"
          onChange={(event) => setText(event.target.value)}
          onBlur={finish}
          onKeyDown={(event) => event.key === "Enter" && finish()}
        />
        <datalist id={listId}>
          {models.map((each) => (
            <option key={each} value={each} />
          ))}
        </datalist>
      </>
    );
  }
  return (
    <SelectField
      label="Model"
      value={model ?? ""}
      onChange={(event) => onChange(event.target.value || null)}
    >
      <option value="">{usual}</option>
      {models.map((each) => (
        <option key={each} value={each}>
          {each}
        </option>
      ))}
    </SelectField>
  );
}
