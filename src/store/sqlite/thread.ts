import { systemClock } from '../../clock.ts';
import { serve } from './serve.ts';

serve(systemClock);
