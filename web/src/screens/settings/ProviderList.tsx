import { useProviders } from "@/api/queries";
import type { ProviderDetails } from "@/api/types";
import { ErrorNote } from "@/screens/ErrorNote";
import { ProviderState } from "@/screens/ProviderState";
import styles from "@/screens/settings/SettingsScreen.module.css";
import { WayOut } from "@/screens/WayOut";
import { Skeleton } from "@/ui/Skeleton";
import { Tag } from "@/ui/Tag";

/** The providers: which can be used, why the others cannot, and their models. */
export function ProviderList() {
  const providers = useProviders();
  if (providers.error) return <ErrorNote error={providers.error} />;
  if (!providers.data) return <Skeleton lines={6} label="The models are being loaded" />;
  const { details } = providers.data;
  const first = details.find(({ available }) => available);
  return (
    <ul className={styles.cards}>
      {details.map((provider) => (
        <li key={provider.name} className={styles.card}>
          <Provider provider={provider} isDefault={provider === first} />
        </li>
      ))}
    </ul>
  );
}

function Provider({ provider, isDefault }: { provider: ProviderDetails; isDefault: boolean }) {
  const { name, kind, available, reason, models, default_model } = provider;
  return (
    <>
      <header className={styles.head}>
        <h2>{name}</h2>
        {name !== kind && <Tag>{kind}</Tag>}
        {isDefault && <Tag>used where none is named</Tag>}
        <span className={styles.right}>
          <ProviderState provider={provider} />
        </span>
      </header>
      <p className={styles.text}>
        {reason && `${reason}. `}
        {!available && <WayOut provider={provider} />}
      </p>
      <ul className={styles.models} aria-label={`Models of ${name}`}>
        {models.map((model) => (
          <li key={model}>
            <Tag>
              {model}
              {model === default_model && " · default"}
            </Tag>
          </li>
        ))}
      </ul>
      {provider.open_models && <p className={styles.faint}>Other models of it work by name too.</p>}
    </>
  );
}
