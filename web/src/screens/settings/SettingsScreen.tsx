import { useSearchParams } from "react-router";
import { BrowserSettings } from "@/screens/settings/BrowserSettings";
import { LimitList } from "@/screens/settings/LimitList";
import { NodeTypeList } from "@/screens/settings/NodeTypeList";
import { ProviderList } from "@/screens/settings/ProviderList";
import styles from "@/screens/settings/SettingsScreen.module.css";
import { usePageTitle } from "@/ui/pageTitle";
import { TabPanel, Tabs } from "@/ui/Tabs";

const TABS = [
  { value: "models", label: "Models" },
  { value: "node-types", label: "Node types" },
  { value: "limits", label: "Limits" },
  { value: "browser", label: "This browser" },
] as const;

type TabName = (typeof TABS)[number]["value"];

/** The models, node types and limits of the service, and the preferences of this browser. */
export function SettingsScreen() {
  const [params, setParams] = useSearchParams();
  usePageTitle("Settings");
  const tab = TABS.find(({ value }) => value === params.get("tab"))?.value ?? "models";
  const choose = (next: TabName) => setParams({ tab: next }, { replace: true });
  return (
    <div className={styles.page}>
      <h1 className={styles.title}>Settings</h1>
      <Tabs label="Settings" value={tab} tabs={TABS} onChange={choose} className={styles.tabs}>
        <TabPanel value="models" className={styles.panel}>
          <ProviderList />
        </TabPanel>
        <TabPanel value="node-types" className={styles.panel}>
          <NodeTypeList />
        </TabPanel>
        <TabPanel value="limits" className={styles.panel}>
          <LimitList />
        </TabPanel>
        <TabPanel value="browser" className={styles.panel}>
          <BrowserSettings />
        </TabPanel>
      </Tabs>
    </div>
  );
}
