// The model of a RanksReport that comes from the kernel: widgets/model/ranks.py.

import type { ViewModel } from "./wire";

export interface StepModel {
  frame: string;
  name: string;
  place: string;
  status: string;
  notes: string[];
  same: string;
}

export interface GroupModel {
  title: string;
  ranks: string;
  count: number;
  counts: string;
  steps: StepModel[];
  view: ViewModel | null;
}

export interface DifferenceModel {
  title: string;
  details: string[];
  group: number;
  reference: number;
  step: number;
  frame: string;
  there: string;
  side: number;
}

export interface RankModel {
  rank: number;
  group: number;
  status: string;
  words: string;
  total: number;
  times: number[];
}

export interface RanksModel {
  headline: string;
  alike: boolean;
  ranks: RankModel[];
  groups: GroupModel[];
  differences: DifferenceModel[];
  more: number;
  unwell: string[];
  slow: string[];
  notes: string[];
}

/** Builds the view of one report; returns a function that removes it. */
export type MountReport = (root: HTMLElement, content: ViewModel, selected: string) => () => void;
