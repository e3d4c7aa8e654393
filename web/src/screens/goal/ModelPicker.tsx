import { useState } from "react";
import type { ProviderDetails } from "@/api/types";
import styles from "@/screens/goal/ModelPicker.module.css";
import { chosenModel, chosenProvider, type ModelChoice } from "@/screens/goal/providerChoice";
import { ProviderState } from "@/screens/ProviderState";
import { WayOut } from "@/screens/WayOut";
import { Chip } from "@/ui/Chip";
import { TextField } from "@/ui/Field";
import { Icon } from "@/ui/icons";
import { Popover } from "@/ui/Popover";
import { Status } from "@/ui/Status";

interface ModelPickerProps {
  providers: readonly ProviderDetails[];
  choice: ModelChoice;
  onChange: (choice: ModelChoice) => void;
}

function State({ provider }: { provider: ProviderDetails }) {
  if (!provider.available) return <ProviderState provider={provider} />;
  if (provider.kind !== "local") return <span>{provider.name}</span>;
  return (
    <span className={styles.ready}>
      <Icon name="tick" small />
      Embedded model ready
    </span>
  );
}

/** The chip that says which model plans, and opens the list of all. */
export function ModelPicker({ providers, choice, onChange }: ModelPickerProps) {
  const [open, setOpen] = useState(false);
  const provider = chosenProvider(choice, providers);
  const choose = (next: ModelChoice) => {
    onChange(next);
    setOpen(false);
  };
  const chip = (
    <Chip opens>
      <span className="visually-hidden">Model: </span>
      {provider ? (
        <>
          <b>{chosenModel(choice, provider)}</b>
          <State provider={provider} />
        </>
      ) : (
        <Status status="failed">No model can be used yet</Status>
      )}
    </Chip>
  );
  return (
    <Popover trigger={chip} label="Model" open={open} onOpenChange={setOpen}>
      <div className={styles.providers}>
        {providers.map((each) => (
          <ProviderModels
            key={each.name}
            provider={each}
            chosen={each === provider ? chosenModel(choice, provider) : undefined}
            onChoose={(model) => choose({ provider: each.name, model })}
          />
        ))}
      </div>
    </Popover>
  );
}

interface ProviderModelsProps {
  provider: ProviderDetails;
  /** The chosen model, if it is one of this provider. */
  chosen: string | undefined;
  onChoose: (model: string | null) => void;
}

function ProviderModels({ provider, chosen, onChoose }: ProviderModelsProps) {
  return (
    <section aria-label={provider.name}>
      <header className={styles.head}>
        <h3>{provider.kind === "local" ? "Embedded, runs here" : provider.name}</h3>
        {!provider.available && <ProviderState provider={provider} />}
      </header>
      {provider.available ? (
        <Models provider={provider} chosen={chosen} onChoose={onChoose} />
      ) : (
        <p className={styles.why}>
          {provider.reason}. <WayOut provider={provider} />
        </p>
      )}
    </section>
  );
}

function Models({ provider, chosen, onChoose }: ProviderModelsProps) {
  const [name, setName] = useState("");
  const others = chosen && !provider.models.includes(chosen) ? [chosen] : [];
  return (
    <>
      <ul>
        {[...provider.models, ...others].map((model) => (
          <li key={model}>
            <button
              type="button"
              className={styles.model}
              aria-pressed={model === chosen}
              onClick={() => onChoose(model)}
            >
              {model}
              {model === provider.default_model && <span className={styles.default}>default</span>}
              {model === chosen && <Icon name="tick" small />}
            </button>
          </li>
        ))}
      </ul>
      {provider.open_models && (
        <form
          className={styles.other}
          onSubmit={(event) => {
            event.preventDefault();
            if (name.trim()) onChoose(name.trim());
          }}
        >
          <TextField
            label={`Another model of ${provider.name}`}
            hiddenLabel
            placeholder="Another model, by name"
            value={name}
            maxLength={200}
            onChange={(event) => setName(event.target.value)}
          />
        </form>
      )}
    </>
  );
}
